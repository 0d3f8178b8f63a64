"""Makes of a wanted run what its supervisor is told: files, command line, limits. Called by the driver."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from boatyard.automation.drivers.local import osac
from boatyard.automation.drivers.local.limits import Limits
from boatyard.automation.drivers.local.passes import Pass
from boatyard.automation.drivers.local.values import check_names, leaves, render
from boatyard.automation.port import RunWanted
from boatyard.model.errors import Refused, Violation
from boatyard.model.yaml_text import NotYaml, load_yaml
from boatyard.processes.marked import MARK

INSIDE = Path(__file__).parent / "inside"
HOME = "/run/boatyard"  # the run's own directory, where it has a file system of its own
CONTENT = "/run/template"

_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_PHASE = re.compile(r"[a-z][a-z0-9_]{0,63}")
_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
# Of a number of its own there is no account; nobody else here uses numbers this high.
FIRST_USER = 0x60000000
_INVENTORY = 'localhost ansible_connection=local ansible_python_interpreter="{{ ansible_playbook_python }}"\n'


@dataclass(frozen=True)
class Ground:
    """What this machine allows."""

    python: Path  # of Ansible's environment
    playbook: Path  # the program ansible-playbook in it
    namespaces: bool
    users: bool  # a number of its own for each run: we are root


def plan_run(
    wanted: RunWanted,
    *,
    start: int,
    content: Path,
    place: Path,
    ground: Ground,
    limits: Limits,
    api: Pass | None = None,
) -> dict[str, object]:
    """The plan as `boatyard_inside.plans` reads it. Refused when it cannot be run as it is."""
    _check(wanted)
    home = HOME if ground.namespaces else str(place / "work")
    seen = CONTENT if ground.namespaces else str(content)
    files = {
        "inventory": _INVENTORY,
        "project/play.yml": _playbook(wanted, home, api, _role(wanted, content)),
        **{f"files/{name}": text for name, text in wanted.files.items()},
    }
    user = _user(f"{place}/{start}") if ground.users else None
    return {
        "attempt": wanted.attempt,
        "start": start,
        "user": user,
        "namespaces": ground.namespaces,
        "home": home,
        "memory": limits.directory,
        "reach": [str(INSIDE), *_environment(ground.python)],
        "content": [str(content.resolve()), seen],
        "files": files,
        "links": _links(wanted.template, content, seen),
        "argv": [
            *(str(ground.python), "-I", "-B", str(ground.playbook)),
            *("-i", f"{home}/inventory", *_vault(wanted, home), f"{home}/project/play.yml"),
        ],
        "environ": _environ(wanted, home, mark_of(place)),
        "limits": limits.by_name(own_user=user is not None),
        "time_limit": min(wanted.time_limit, limits.longest),
        "output_limit": limits.output,
        "events_limit": limits.story,
        "hidden": sorted({*_hidden(wanted), *((api.token,) if api else ())}),
    }


KUBECONFIG = "kubeconfig"
_KEYS = ("client-key-data", "token", "password")  # of a user in it
VAULT_PASSWORD = "vault_password"  # the file of a run that opens the vaults of its template


def _check(wanted: RunWanted) -> None:
    found = []
    for field, text, pattern in (
        ("action", wanted.action, _PHASE),
        ("template", wanted.template, _WORD),
    ):
        if not pattern.fullmatch(text):
            found.append(Violation(field, f"{text!r} names none", "use letters, digits and _"))
    for name in wanted.files:
        if not _FILE.fullmatch(name):
            found.append(Violation(f"files.{name}", "is no name of a file", "use letters and -"))
    found += check_names("values", wanted.values)
    found += check_names("secrets", wanted.secrets)
    found += [
        Violation(f"secrets.{name}", "is given as a value too", "give it once")
        for name in sorted(set(wanted.secrets) & set(wanted.values))
    ]
    if found:
        raise Refused("", *found)


def _playbook(wanted: RunWanted, home: str, api: Pass | None, role: Path) -> str:
    """JSON is YAML: what is put in here is quoted, and the names were checked besides.

    The values stand in the play itself: a file of variables would be read again for every task.
    """
    called = {"name": wanted.template, "tasks_from": wanted.action}
    tasks = [{"name": wanted.action, "ansible.builtin.import_role": called}]
    theirs = osac.variables(wanted) if osac.is_for_osac(role) else {}
    variables = render({**theirs, **_variables(wanted, home), **_api(wanted, api)})
    return (
        f'[{{"name": {json.dumps(wanted.template)}, "hosts": "localhost", "gather_facts": false, '
        f'"vars": {variables}, "tasks": {json.dumps(tasks)}}}]\n'
    )


def _variables(wanted: RunWanted, home: str) -> Mapping[str, object]:
    parameters = {**wanted.values, **wanted.secrets}
    return {
        **parameters,
        "boatyard_order": dict(wanted.order),
        "boatyard_parameters": parameters,
        # By this name a form may ask for all of them at once, as roles made for OSAC do.
        "template_parameters": parameters,
        "boatyard_files": {name: f"{home}/files/{name}" for name in wanted.files},
        "boatyard_run": {
            "action": wanted.action,
            "template": wanted.template,
            "digest": wanted.digest,
            "attempt": wanted.attempt,
        },
    }


def _api(wanted: RunWanted, api: Pass | None) -> Mapping[str, object]:
    """What our own tasks ask with. Only in runs that may."""
    if api is None:
        return {}
    return {
        "boatyard_api": {
            "url": api.url,
            "token": api.token,
            "ca": api.ca,
            "expires": api.expires,
            "order": wanted.order.get("id", ""),
        }
    }


def _role(wanted: RunWanted, content: Path) -> Path:
    """Where its folder is: in a project, or the content itself."""
    inside = content / "roles" / wanted.template
    return inside if inside.is_dir() else content


def _links(template: str, content: Path, seen: str) -> Mapping[str, str]:
    """The playbook lies beside what the template brings: a whole project with `roles/`, or one role."""
    if (content / "roles" / template).is_dir():
        names = sorted(path.name for path in content.iterdir() if not path.name.startswith("."))
        return {f"project/{name}": f"{seen}/{name}" for name in names if name != "play.yml"}
    if (content / "tasks").is_dir():
        return {f"project/roles/{template}": seen}
    raise Refused(
        f"the content of template {template} is no role: it has neither tasks/ nor roles/{template}/",
        reason="NoRole",
    )


def _environ(wanted: RunWanted, home: str, mark: str) -> Mapping[str, str]:
    environ = {
        "HOME": home,
        "USER": "run",
        "LOGNAME": "run",
        "SHELL": "/bin/sh",
        "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin",
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "TMPDIR": f"{home}/tmp",
        "ANSIBLE_CONFIG": str(INSIDE / "ansible.cfg"),
        MARK: mark,
        "PYTHONDONTWRITEBYTECODE": "1",  # what it could write is thrown away with its directory
    }
    if KUBECONFIG in wanted.files:
        environ["KUBECONFIG"] = environ["K8S_AUTH_KUBECONFIG"] = f"{home}/files/kubeconfig"
    return environ


def mark_of(place: Path) -> str:
    """By the place and not by the key: another Boatyard on this machine may have a run of the same key."""
    return f"automation/{hashlib.sha256(str(place).encode()).hexdigest()[:16]}"


def _vault(wanted: RunWanted, home: str) -> tuple[str, ...]:
    if VAULT_PASSWORD not in wanted.files:
        return ()
    return ("--vault-password-file", f"{home}/files/{VAULT_PASSWORD}")


def _environment(python: Path) -> list[str]:
    """Ansible's environment, and the installation of Python that it was made from."""
    venv = python.parent.parent
    base = python.resolve().parent.parent
    return [str(venv), *([] if base == Path("/usr") else [str(base)])]


def _hidden(wanted: RunWanted) -> set[str]:
    found = set(leaves(wanted.secrets))
    if VAULT_PASSWORD in wanted.files:
        found.add(wanted.files[VAULT_PASSWORD].strip())
    found.update(_keys_in(wanted.files.get(KUBECONFIG, "")))
    return found


def _keys_in(kubeconfig: str) -> Iterator[str]:
    """With which one is its user: as they stand in it, and a key also as it is then used."""
    try:
        said = load_yaml(kubeconfig)
    except NotYaml:
        return
    entries = said.get("users") if isinstance(said, dict) else None
    for entry in entries if isinstance(entries, list) else ():
        user = entry.get("user") if isinstance(entry, dict) else None
        for name in _KEYS:
            text = user.get(name) if isinstance(user, dict) else None
            if isinstance(text, str):
                yield text
                with suppress(ValueError):
                    yield base64.b64decode(text, validate=True).decode()


def _user(seed: str) -> int:
    return FIRST_USER + int.from_bytes(hashlib.sha256(seed.encode()).digest()[:4], "big") % (
        1 << 28
    )


def supervisor(verb: str, *arguments: str, python: Path, site: bool = False) -> list[str]:
    """The command line that starts something of ours in Ansible's environment; with its packages if need be."""
    flags = ["-I", "-B"] if site else ["-I", "-S", "-B"]
    return [str(python), *flags, str(INSIDE / "boatyard_inside"), verb, *arguments]
