"""What the commands print against a live `boatyard up`: ids, times and chance masked, the rest to the letter.

UPDATE_GOLDENS=1 writes what is printed now; read the difference before keeping it.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from boatyard.client.config import read_local_server
from boatyard.twin.client import TwinClient
from boatyard.twin.delays import PROFILES
from tests.support.assets import NO_ASSETS

GOLDENS = Path(__file__).parent / "goldens"
BOATYARD = (sys.executable, "-m", "boatyard.app.main")

MASKS = (
    (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "ID"),
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?Z?", "TIME"),
    (r"\b(\d+d)?(\d+h)?(\d+m)?\d+s\b", "TOOK"),
    (r"\b(web-\d)-[0-9a-f]{6}\b", r"\1-UID"),
    (r"\b(198\.51\.|203\.0\.)\d+\.\d+\b", "ADDRESS"),
    (r"\b10\.\d+\.\d+\.\d+/\d+\b", "SUBNET"),
    (r"\b(boston|lyon)(-1)?\b", "HUB"),
    (r"\br\d+-n\d+\b", "HOST"),
    (r"(?m)^(  gone  l2 +)\d+$", r"\1VLAN"),
    (r"\bin \d+d\d+h, on \d{4}-\d\d-\d\d", "EXPIRY"),
    (r'("?version"?: )\d+\b', r"\1N"),
    (r"(?<=\S) {2,}", "  "),  # columns are as wide as what was masked
)  # fmt: skip


class GoldenEnvironment:
    """One `boatyard up`, and commands typed at it."""

    def __init__(self, home: Path) -> None:
        for name in ("run", "config"):
            (home / name).mkdir()
        kept = {name: value for name, value in os.environ.items() if "BOATYARD" not in name}
        self.home = home
        self.environ = kept | {
            "XDG_RUNTIME_DIR": str(home / "run"),
            "XDG_CONFIG_HOME": str(home / "config"),
            "USER": "harbour",
            "BOATYARD_ASSETS": NO_ASSETS,
            "COLUMNS": "100",
        }
        self.process = subprocess.Popen(
            [*BOATYARD, "up", "--data", str(home / "data"), "--grpc", "127.0.0.1:0", "--rest", "127.0.0.1:0"],
            env=self.environ,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )  # fmt: skip
        assert self.process.stdout is not None
        self.ready = self.process.stdout.readline()

    def run(self, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*BOATYARD, *words],
            env=self.environ | environ,
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
            cwd=self.home,
        )

    @contextmanager
    def in_haste(self) -> Iterator[None]:
        """What is asked for meanwhile takes a fifth of its time."""
        self._delay({kind: seconds / 5 for kind, seconds in PROFILES["demo"].items()})
        try:
            yield
        finally:
            self._delay({})

    def _delay(self, overrides: dict[str, float]) -> None:
        async def call() -> None:
            twin = TwinClient(self.home / "data" / "twin.sock")
            await twin.call("twin.set_delays", profile="demo", overrides=overrides)
            await twin.close()

        asyncio.run(call())

    def stop(self) -> int:
        with self.process:  # closes its output, too
            self.process.send_signal(signal.SIGTERM)
            return self.process.wait(30)


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    one = GoldenEnvironment(tmp_path_factory.mktemp("up"))
    assert one.ready.startswith("boatyard: ready"), one.ready
    yield one
    assert one.stop() == 0
    assert read_local_server(one.environ) is None


@pytest.fixture
def haste(environment):
    with environment.in_haste():
        yield


def masked(text: str) -> str:
    for pattern, mask in MASKS:
        text = re.sub(pattern, mask, text)
    return text


def compare(name: str, text: str) -> None:
    path = GOLDENS / f"{name}.txt"
    shown = masked(text)
    if os.environ.get("UPDATE_GOLDENS"):
        path.write_text(shown)
    assert shown == path.read_text()


@pytest.fixture(scope="module")
def token(environment):
    """A member of acme."""
    made = environment.run(
        *("token", "create", "--tenant", "acme", "--user", "ann", "--role", "member"),
        *("--data", str(environment.home / "data")),
    )
    assert made.returncode == 0, made.stderr
    return made.stdout.strip()


@pytest.fixture(scope="module")
def web(environment, token):
    """A cluster that ann has ordered."""
    done = environment.run(
        "create", "cluster", "web-1", "--template", "small", "-l", "team=web", BOATYARD_TOKEN=token
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.mark.parametrize("name, words", [
    ("get-templates", "get clustertemplates"),
    ("get-templates-wide", "get templates -o wide"),
    ("get-versions", "get clusterversions"),
    ("get-hosttypes", "get hosttypes"),
    ("get-tenants", "get tenants"),
    ("get-hubs-name", "get hubs -o name"),
    ("get-nothing", "get leftovers"),
    ("whoami", "whoami"),
])  # fmt: skip
def test_what_a_new_yard_shows(environment, name, words):
    done = environment.run(*words.split())
    assert done.returncode == 0, done.stderr
    compare(name, re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:PORT", done.stdout + done.stderr))


@pytest.mark.parametrize("name, words, code", [
    ("refused-name", "create cluster Web_1 -t small --tenant acme --node-set compute=0", 2),
    ("unknown-template", "create cluster x -t huge --tenant acme", 3),
    ("unknown-version", "create cluster x -t small --tenant acme --version 1.2.3", 3),
    ("unknown-parameter", "create cluster x -t small --tenant acme -p colour=red", 2),
    ("unknown-cluster", "delete cluster nowhere", 3),
    ("unknown-kind", "get pods", 2),
    ("bad-filter", "get clusters --filter this.nonsense==1", 2),
])  # fmt: skip
def test_what_a_mistake_is_told(environment, name, words, code):
    done = environment.run(*words.split())
    assert (done.returncode, done.stdout) == (code, "")
    compare(name, done.stderr)


def test_a_wrong_token_is_refused(environment):
    done = environment.run("get", "clusters", BOATYARD_TOKEN="junk")
    assert (done.returncode, done.stdout) == (4, "")
    compare("wrong-token", done.stderr)


def test_a_tenant_may_not_see_hubs(environment, token):
    done = environment.run("get", "hubs", BOATYARD_TOKEN=token)
    assert (done.returncode, done.stdout) == (4, "")


def test_creating_tells_each_step_once_it_is_done(web):
    lines = masked(web.stdout).splitlines()
    steps = ("hosts", "network", "addresses", "names", "install", "validate")
    done = [line for line in lines if re.match(r"web-1: \w+ done", line)]
    assert [line.split()[1] for line in done] == list(steps)
    assert lines[-2:] == ["web-1: ready", "Next: boatyard kubeconfig web-1"]
    assert "HUB" not in masked(web.stdout).replace("HUB.example", "")  # a tenant is not told


@pytest.mark.parametrize("name, words", [
    ("get-clusters", "get clusters"),
    ("get-clusters-wide", "get clusters -o wide"),
    ("get-cluster-json", "get cluster web-1 -o json"),
    ("get-cluster-yaml", "get cluster web-1 -o yaml"),
    ("describe", "describe cluster web-1"),
    ("explain", "explain cluster web-1"),
    ("events", "events cluster web-1"),
])  # fmt: skip
def test_what_a_tenant_sees_of_a_ready_cluster(environment, web, token, name, words):
    done = environment.run(*words.split(), BOATYARD_TOKEN=token)
    assert done.returncode == 0, done.stderr
    compare(name, done.stdout)


def test_an_operator_is_told_of_the_hubs(environment, web):
    done = environment.run("explain", "cluster", "web-1")
    compare("explain-operator", done.stdout)


def test_the_same_name_again_is_a_conflict(environment, web, token):
    done = environment.run("create", "cluster", "web-1", "-t", "small", BOATYARD_TOKEN=token)
    assert done.returncode == 5
    compare("same-name", done.stderr)


def test_credentials_go_to_files_of_their_owner(environment, web, token):
    for verb in ("kubeconfig", "password"):
        path = environment.home / verb
        assert environment.run(verb, "web-1", "-o", str(path), BOATYARD_TOKEN=token).returncode == 0
        assert path.stat().st_mode & 0o777 == 0o600
        assert len(path.read_text()) > 8


def test_a_kubeconfig_is_merged_and_taken_out_again(environment, web, token):
    path = environment.home / "kubeconfig-of-ann"
    path.write_text("# mine\nkind: Config\ncurrent-context: mine\n")
    said = ""
    for words in (["--switch"], ["--context", "other"], ["--remove"], ["--remove"]):
        done = environment.run(
            "kubeconfig", "web-1", *words, BOATYARD_TOKEN=token, KUBECONFIG=str(path)
        )
        assert (done.returncode, done.stderr) == (0, "")
        said += done.stdout
    compare("kubeconfig", said.replace(str(environment.home), "HOME"))
    assert "token" not in path.read_text()


def test_a_simulated_cluster_issues_no_access(environment, web, token):
    done = environment.run("kubeconfig", "web-1", "--for", "bob", "-o", "-", BOATYARD_TOKEN=token)
    assert (done.returncode, done.stdout) == (5, "")
    compare("kubeconfig-simulated", done.stderr)


def test_filters_reach_the_server(environment, web, token):
    wanted = 'this.metadata.labels["team"] == "web" && this.status.state == 2'
    done = environment.run(
        "get", "clusters", "--filter", wanted, "-o", "name", BOATYARD_TOKEN=token
    )
    assert done.stdout == "cluster/web-1\n"


@pytest.mark.usefixtures("haste")
def test_from_order_to_receipt(environment, token):
    """One cluster of its own: up, down, away."""

    def typed(*words: str) -> str:
        done = environment.run(*words, BOATYARD_TOKEN=token)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert typed("create", "cluster", "web-2", "-t", "small", "--no-wait").endswith(
        "Next: boatyard wait cluster web-2 --for ready\n"
    )
    assert "web-2: ready" in typed("wait", "cluster", "web-2", "--for", "ready")
    assert "5/5 nodes" in typed("scale", "cluster", "web-2", "compute=5")
    down = typed("scale", "cluster", "web-2", "--node-set", "compute", "--size", "1")
    assert down.splitlines()[-1] == "web-2: ready"
    shown = json.loads(typed("get", "cluster", "web-2", "-o", "json"))
    assert shown["status"]["ready_nodes"] == {"compute": 1}
    away = typed("delete", "cluster", "web-2")
    first, *gone = away[away.index("receipt:") :].splitlines()
    compare("receipt", "\n".join([first, *sorted(gone)]) + "\n")  # what goes first is chance
    # The proof stays when the cluster is gone.
    assert typed("wait", "cluster", "web-2", "--for", "deleted").startswith("receipt: web-2")
    assert environment.run("get", "clusters", "web-2", BOATYARD_TOKEN=token).returncode == 3


@pytest.mark.usefixtures("haste")
def test_rest_backup_upgrade_and_restore(environment, token):
    """One cluster of its own through the rest of its life, and another one made of its backup."""

    def typed(*words: str) -> str:
        done = environment.run(*words, BOATYARD_TOKEN=token)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    typed("create", "cluster", "web-5", "-t", "ocp-4-17-small", "--node-set", "compute=1")
    rested = typed("hibernate", "cluster", "web-5").splitlines()
    assert rested[0] == "Putting cluster web-5 to rest."
    assert rested[-2:] == ["web-5: hibernated", "Next: boatyard resume cluster web-5"]
    compare("describe-hibernated", typed("describe", "cluster", "web-5"))
    asleep = environment.run("scale", "cluster", "web-5", "compute=2", BOATYARD_TOKEN=token)
    assert asleep.returncode == 5
    compare("scale-hibernated", asleep.stderr)
    assert typed("resume", "cluster", "web-5").splitlines()[-1] == "web-5: ready"
    kept = typed("backup", "cluster", "web-5", "--name", "before").splitlines()
    assert kept[0] == "Taking backup before of cluster web-5."
    assert kept[-2] == "Backup before is ready: 4.0 KiB, version 4.17.9."
    assert "web-5: ready" in typed("upgrade", "cluster", "web-5", "--to", "4.18.3")
    compare("get-backups", typed("get", "backups"))
    compare("describe-backup", typed("describe", "backup", "before"))
    older = environment.run("upgrade", "cluster", "web-5", "--to", "4.17.9", BOATYARD_TOKEN=token)
    assert older.returncode == 2
    compare("upgrade-back", older.stderr)
    unsure = environment.run(
        "restore", "cluster", "web-5", "--backup", "before", BOATYARD_TOKEN=token
    )
    assert unsure.returncode == 2
    compare("restore-unsure", unsure.stderr)
    again = typed("restore", "cluster", "web-5", "--backup", "before", "--yes")
    assert again.splitlines()[-1] == "web-5: ready"
    typed("delete", "cluster", "web-5")
    words = ("-t", "ocp-4-17-small", "--node-set", "compute=1", "--from-backup", "before")
    assert "web-6: ready" in typed("create", "cluster", "web-6", *words)
    shown = json.loads(typed("get", "cluster", "web-6", "-o", "json"))
    assert shown["status"]["restored"] == "generation-1"
    assert typed("delete", "backup", "before").endswith("Backup before is gone.\n")
    typed("delete", "cluster", "web-6")


def test_a_timeout_leaves_the_order_running(environment, token):
    done = environment.run(
        "create", "cluster", "web-3", "-t", "small", "--timeout", "0.2", BOATYARD_TOKEN=token
    )
    assert done.returncode == 7
    with environment.in_haste():
        assert environment.run("wait", "cluster", "web-3", BOATYARD_TOKEN=token).returncode == 0


def test_an_interrupt_leaves_the_order_running(environment, token):
    words = [*BOATYARD, "create", "cluster", "web-4", "-t", "small"]
    environ = environment.environ | {"BOATYARD_TOKEN": token}
    with subprocess.Popen(words, env=environ, stdout=subprocess.PIPE, text=True) as typed:
        assert typed.stdout is not None
        assert typed.stdout.readline().startswith("Ordered cluster web-4")
        typed.stdout.readline()  # it follows
        typed.send_signal(signal.SIGINT)
        said = typed.stdout.read()
        assert typed.wait(30) == 130
    assert "Watch it again: boatyard wait cluster web-4 --for ready" in said
    with environment.in_haste():
        assert environment.run("wait", "cluster", "web-4", BOATYARD_TOKEN=token).returncode == 0
