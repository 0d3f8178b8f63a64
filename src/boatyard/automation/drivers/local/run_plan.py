"""Makes the plan of a run for its supervisor: files, command line, limits. Called by the driver."""

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
from boatyard.automation.drivers.local.limits import RunLimits
from boatyard.automation.drivers.local.run_token import RunToken
from boatyard.automation.drivers.local.values import check_names, iter_texts, render_values
from boatyard.automation.port import RunSpec
from boatyard.model.errors import Refused, Violation
from boatyard.model.yaml_text import NotYaml, load_yaml
from boatyard.processes.marked_processes import MARK_VARIABLE

INSIDE_DIRECTORY = Path(__file__).parent / "inside"
RUN_HOME = "/run/boatyard"  # the run's own directory, when it has its own file system
RUN_CONTENT = "/run/template"

_TEMPLATE_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_PHASE_PATTERN = re.compile(r"[a-z][a-z0-9_]{0,63}")
_FILE_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
# The uids of runs have no accounts; nothing else on this machine uses uids this high.
FIRST_RUN_UID = 0x60000000
_INVENTORY = 'localhost ansible_connection=local ansible_python_interpreter="{{ ansible_playbook_python }}"\n'


@dataclass(frozen=True)
class RunCapabilities:
    """What this machine allows runs to use."""

    python: Path  # the interpreter of Ansible's environment
    playbook: Path  # the program ansible-playbook in that environment
    namespaces: bool
    users: bool  # each run gets its own uid: we are root


def plan_run(
    spec: RunSpec,
    *,
    start: int,
    content: Path,
    run_directory: Path,
    capabilities: RunCapabilities,
    limits: RunLimits,
    api: RunToken | None = None,
) -> dict[str, object]:
    """The plan as `boatyard_inside.plans` reads it. Refused when the spec or the content cannot be run."""
    _check_spec(spec)
    home = RUN_HOME if capabilities.namespaces else str(run_directory / "work")
    content_path = RUN_CONTENT if capabilities.namespaces else str(content)
    files = {
        "inventory": _INVENTORY,
        "project/play.yml": _render_playbook(spec, home, api, _find_role(spec, content)),
        **{f"files/{name}": text for name, text in spec.files.items()},
    }
    user = _derive_uid(f"{run_directory}/{start}") if capabilities.users else None
    return {
        "attempt": spec.attempt,
        "start": start,
        "user": user,
        "namespaces": capabilities.namespaces,
        "home": home,
        "memory": limits.directory_bytes,
        "reach": [str(INSIDE_DIRECTORY), *_python_directories(capabilities.python)],
        "content": [str(content.resolve()), content_path],
        "files": files,
        "links": _plan_links(spec.template, content, content_path),
        "argv": [
            *(str(capabilities.python), "-I", "-B", str(capabilities.playbook)),
            *("-i", f"{home}/inventory", *_vault_arguments(spec, home), f"{home}/project/play.yml"),
        ],
        "environ": _environ(spec, home, process_mark(run_directory)),
        "limits": limits.to_rlimits(own_user=user is not None),
        "time_limit": min(spec.time_limit, limits.max_seconds),
        "output_limit": limits.output_bytes,
        "events_limit": limits.log_bytes,
        "hidden": sorted({*_collect_secrets(spec), *((api.token,) if api else ())}),
    }


KUBECONFIG = "kubeconfig"
_SECRET_FIELDS = ("client-key-data", "token", "password")  # secret fields of a user in a kubeconfig
VAULT_PASSWORD = "vault_password"  # file with the password of the template's vaults


def _check_spec(spec: RunSpec) -> None:
    violations = []
    for field, text, pattern in (
        ("action", spec.action, _PHASE_PATTERN),
        ("template", spec.template, _TEMPLATE_PATTERN),
    ):
        if not pattern.fullmatch(text):
            violations.append(Violation(field, f"{text!r} names none", "use letters, digits and _"))
    for name in spec.files:
        if not _FILE_PATTERN.fullmatch(name):
            violations.append(
                Violation(f"files.{name}", "is no name of a file", "use letters and -")
            )
    violations += check_names("values", spec.values)
    violations += check_names("secrets", spec.secrets)
    violations += [
        Violation(f"secrets.{name}", "is given as a value too", "give it once")
        for name in sorted(set(spec.secrets) & set(spec.values))
    ]
    if violations:
        raise Refused("", *violations)


def _render_playbook(spec: RunSpec, home: str, api: RunToken | None, role: Path) -> str:
    """The playbook, as JSON, which is YAML: all values are quoted, and the names have been checked.

    The values are in the play itself: Ansible would read a file of variables again for every task.
    """
    role_import = {"name": spec.template, "tasks_from": spec.action}
    tasks = [{"name": spec.action, "ansible.builtin.import_role": role_import}]
    osac_variables = osac.variables(spec) if osac.is_for_osac(role) else {}
    variables = render_values(
        {**osac_variables, **_variables(spec, home), **_api_variables(spec, api)}
    )
    return (
        f'[{{"name": {json.dumps(spec.template)}, "hosts": "localhost", "gather_facts": false, '
        f'"vars": {variables}, "tasks": {json.dumps(tasks)}}}]\n'
    )


def _variables(spec: RunSpec, home: str) -> Mapping[str, object]:
    parameters = {**spec.values, **spec.secrets}
    return {
        **parameters,
        "boatyard_order": dict(spec.order),
        "boatyard_parameters": parameters,
        # Roles made for OSAC read all parameters under this name.
        "template_parameters": parameters,
        "boatyard_files": {name: f"{home}/files/{name}" for name in spec.files},
        "boatyard_run": {
            "action": spec.action,
            "template": spec.template,
            "digest": spec.digest,
            "attempt": spec.attempt,
        },
    }


def _api_variables(spec: RunSpec, api: RunToken | None) -> Mapping[str, object]:
    """The variable with which our own tasks call the API; only in runs that may."""
    if api is None:
        return {}
    return {
        "boatyard_api": {
            "url": api.url,
            "token": api.token,
            "ca": api.ca,
            "expires": api.expires,
            "order": spec.order.get("id", ""),
        }
    }


def _find_role(spec: RunSpec, content: Path) -> Path:
    """The folder of the role: in a project, or the content itself."""
    project_role = content / "roles" / spec.template
    return project_role if project_role.is_dir() else content


def _plan_links(template: str, content: Path, content_path: str) -> Mapping[str, str]:
    """Links that put the content beside the playbook: a whole project with `roles/`, or one role."""
    if (content / "roles" / template).is_dir():
        names = sorted(path.name for path in content.iterdir() if not path.name.startswith("."))
        return {f"project/{name}": f"{content_path}/{name}" for name in names if name != "play.yml"}
    if (content / "tasks").is_dir():
        return {f"project/roles/{template}": content_path}
    raise Refused(
        f"the content of template {template} is no role: it has neither tasks/ nor roles/{template}/",
        reason="NoRole",
    )


def _environ(spec: RunSpec, home: str, mark: str) -> Mapping[str, str]:
    environ = {
        "HOME": home,
        "USER": "run",
        "LOGNAME": "run",
        "SHELL": "/bin/sh",
        "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin",
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "TMPDIR": f"{home}/tmp",
        "ANSIBLE_CONFIG": str(INSIDE_DIRECTORY / "ansible.cfg"),
        MARK_VARIABLE: mark,
        "PYTHONDONTWRITEBYTECODE": "1",  # its directory is removed at the end anyway
    }
    if KUBECONFIG in spec.files:
        environ["KUBECONFIG"] = environ["K8S_AUTH_KUBECONFIG"] = f"{home}/files/kubeconfig"
    return environ


def process_mark(run_directory: Path) -> str:
    """The mark of the run's processes. By directory: another Boatyard here may have a run of the same key."""
    return f"automation/{hashlib.sha256(str(run_directory).encode()).hexdigest()[:16]}"


def _vault_arguments(spec: RunSpec, home: str) -> tuple[str, ...]:
    if VAULT_PASSWORD not in spec.files:
        return ()
    return ("--vault-password-file", f"{home}/files/{VAULT_PASSWORD}")


def _python_directories(python: Path) -> list[str]:
    """The folders of Ansible's environment and of the Python that it was created with."""
    venv = python.parent.parent
    base = python.resolve().parent.parent
    return [str(venv), *([] if base == Path("/usr") else [str(base)])]


def _collect_secrets(spec: RunSpec) -> set[str]:
    secrets = set(iter_texts(spec.secrets))
    if VAULT_PASSWORD in spec.files:
        secrets.add(spec.files[VAULT_PASSWORD].strip())
    secrets.update(_kubeconfig_secrets(spec.files.get(KUBECONFIG, "")))
    return secrets


def _kubeconfig_secrets(kubeconfig: str) -> Iterator[str]:
    """The secrets of the users in a kubeconfig: as written there, and also decoded from base64."""
    try:
        config = load_yaml(kubeconfig)
    except NotYaml:
        return
    entries = config.get("users") if isinstance(config, dict) else None
    for entry in entries if isinstance(entries, list) else ():
        user = entry.get("user") if isinstance(entry, dict) else None
        for name in _SECRET_FIELDS:
            text = user.get(name) if isinstance(user, dict) else None
            if isinstance(text, str):
                yield text
                with suppress(ValueError):
                    yield base64.b64decode(text, validate=True).decode()


def _derive_uid(seed: str) -> int:
    return FIRST_RUN_UID + int.from_bytes(hashlib.sha256(seed.encode()).digest()[:4], "big") % (
        1 << 28
    )


def supervisor_command(verb: str, *arguments: str, python: Path, site: bool = False) -> list[str]:
    """The command line that runs our own code in Ansible's environment; `site`: with its packages."""
    flags = ["-I", "-B"] if site else ["-I", "-S", "-B"]
    return [str(python), *flags, str(INSIDE_DIRECTORY / "boatyard_inside"), verb, *arguments]
