"""Each import contract is seen to fail: a small house is built, and one wrong import planted."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINT = Path(sys.executable).with_name("lint-imports")

FLOORS = "The house has floors"
PURE = "Models, rules and plans do no I/O"
DRIVERS = "Drivers are known only where they are wired or proved"
NEIGHBOURS = "Neighbours do not know each other"
CLI = "The CLI sees only the client and the models"
FAKES = "Fakes share nothing with the product"
FAKES_APART = "Fakes are started by a command, and imported by nothing else"

# One good import on every floor, so that the contracts have something to read.
HOUSE = {
    "app/prove.py": "import boatyard.proof.runner\nimport boatyard.cli.clusters",
    "app/player.py": "import boatyard.fakes.hypershift.process",
    "template_test/environment.py": "import boatyard.proof.runner",
    "proof/runner.py": "import boatyard.wiring.worker\nimport boatyard.platforms.drivers.sim",
    "wiring/worker.py": "import boatyard.infra.dns.drivers.sim\nimport boatyard.orderbook.kube.book",
    "api/crud.py": "import boatyard.ledger.documents",
    "operator/door.py": "import boatyard.engine.worker",
    "cli/clusters.py": "import boatyard.client.calls\nimport boatyard.model.metadata",
    "engine/worker.py": "import boatyard.ledger.documents",
    "engine/kube_queue.py": "import boatyard.orderbook.kube.view",
    "client/calls.py": "import grpc\nimport boatyard.model.metadata",
    "resources/clusters/rules.py": "import boatyard.model.metadata",
    "resources/clusters/reconciler.py": "import boatyard.ledger.documents",
    "resources/orders/plan.py": "import boatyard.infra.dns.port",
    "infra/dns/port.py": "import boatyard.model.metadata",
    "infra/dns/drivers/sim.py": "import boatyard.twin.client",
    "infra/l2/port.py": "import boatyard.model.metadata",
    "platforms/port.py": "import boatyard.model.metadata",
    "platforms/drivers/sim.py": "import boatyard.twin.client",
    "orderbook/port.py": "",
    "orderbook/embedded.py": "import boatyard.ledger.documents",
    "orderbook/kube/book.py": "import boatyard.orderbook.kube.view",
    "orderbook/kube/view.py": "import boatyard.kube.client",
    "orderbook/kube/mapping/to_kube.py": "import boatyard.model.metadata",
    "resources/hubs/check/model.py": "",
    "resources/hubs/check/requirements.py": "",
    "resources/hubs/check/report.py": "",
    "ledger/documents.py": "import asyncpg",
    "twin/client.py": "import asyncio",
    "fakes/hypershift/process.py": "import boatyard.fakes.hypershift.api_client",
    "fakes/hypershift/api_client.py": "import aiohttp",
    "kube/client.py": "import socket",
    "pki/keys.py": "",
    "roles/role.py": "import boatyard.model.metadata",
    "model/metadata.py": "import datetime",
}


def test_a_house_built_as_drawn_keeps_all_contracts(tmp_path: Path) -> None:
    broken, kept = lint(tmp_path, HOUSE)

    assert broken == set()
    assert kept == {FLOORS, PURE, DRIVERS, NEIGHBOURS, CLI, FAKES, FAKES_APART}


def test_folders_that_do_not_exist_yet_are_no_fault(tmp_path: Path) -> None:
    by_name = [
        "app",
        "cli",
        "client",
        "fakes",
        "model",
        "orderbook",
        "proof",
        "template_test",
        "wiring",
    ]
    house = {name: "" for name in HOUSE if name.split("/")[0] in by_name}

    broken, kept = lint(tmp_path, house)

    assert broken == set()
    assert len(kept) == 7


@pytest.mark.parametrize(
    "file, planted, contract",
    [
        pytest.param(
            "ledger/documents.py",
            "import boatyard.engine.worker",
            FLOORS,
            id="an import that goes up",
        ),
        pytest.param("helpers/text.py", "", FLOORS, id="a folder without a floor"),
        pytest.param(
            "proof/runner.py",
            "import boatyard.app.prove",
            FLOORS,
            id="a proof that knows its command",
        ),
        pytest.param(
            "proof/runner.py",
            "import boatyard.template_test.environment",
            FLOORS,
            id="a proof that knows the test of templates",
        ),
        pytest.param(
            "template_test/environment.py",
            "import boatyard.app.prove",
            FLOORS,
            id="a test of templates that knows a command",
        ),
        pytest.param(
            "wiring/worker.py",
            "import boatyard.proof.runner",
            FLOORS,
            id="wiring that knows the proof",
        ),
        pytest.param(
            "api/crud.py",
            "import boatyard.wiring.worker",
            FLOORS,
            id="an API that knows its wiring",
        ),
        pytest.param("model/metadata.py", "import socket", PURE, id="a model that opens sockets"),
        pytest.param(
            "resources/clusters/rules.py",
            "import asyncpg",
            PURE,
            id="a rule that asks the database",
        ),
        pytest.param("roles/role.py", "import subprocess", PURE, id="a role that runs programs"),
        pytest.param(
            "resources/orders/plan.py",
            "from boatyard.ledger import documents",
            PURE,
            id="a plan that reads the ledger",
        ),
        pytest.param(
            "resources/clusters/placement.py",
            "import boatyard.resources.clusters.reconciler",
            PURE,
            id="a placement that reaches the ledger by a detour",
        ),
        pytest.param(
            "resources/clusters/reconciler.py",
            "from boatyard.infra.dns.drivers import sim",
            DRIVERS,
            id="a reconciler that picks its driver",
        ),
        pytest.param(
            "platforms/port.py",
            "import boatyard.platforms.drivers.sim",
            DRIVERS,
            id="a port that knows its driver",
        ),
        pytest.param(
            "resources/clusters/rules.py",
            "import boatyard.platforms.drivers",
            PURE,
            id="a rule that knows a driver",
        ),
        pytest.param(
            "platforms/port.py",
            "import boatyard.infra.dns.port",
            NEIGHBOURS,
            id="a platform that knows DNS",
        ),
        pytest.param(
            "infra/l2/port.py",
            "import boatyard.infra.dns.port",
            NEIGHBOURS,
            id="two services of the data centre that know each other",
        ),
        pytest.param(
            "ledger/documents.py",
            "import boatyard.twin.client",
            NEIGHBOURS,
            id="a ledger that knows the twin",
        ),
        pytest.param(
            "orderbook/kube/mapping/to_kube.py",
            "import boatyard.orderbook.kube.view",
            PURE,
            id="a mapping of orders that asks the hub",
        ),
        pytest.param(
            "resources/hubs/check/requirements.py",
            "import boatyard.kube.client",
            PURE,
            id="requirements of a hub that ask the hub",
        ),
        pytest.param(
            "engine/kube_queue.py",
            "import boatyard.orderbook.kube.book",
            DRIVERS,
            id="a queue that picks an order book on a hub",
        ),
        pytest.param(
            "resources/clusters/reconciler.py",
            "import boatyard.orderbook.embedded",
            DRIVERS,
            id="a reconciler that picks the ledger as its order book",
        ),
        pytest.param(
            "fakes/hypershift/api_client.py",
            "import boatyard.twin.client",
            NEIGHBOURS,
            id="a fake that knows the twin",
        ),
        pytest.param(
            "fakes/hypershift/api_client.py",
            "import boatyard.kube.client",
            FAKES,
            id="a fake that speaks with the product's Kubernetes client",
        ),
        pytest.param(
            "fakes/hypershift/api_client.py",
            "import boatyard.model.metadata",
            FAKES,
            id="a fake that shares a model with the product",
        ),
        pytest.param(
            "platforms/drivers/sim.py",
            "import boatyard.fakes.hypershift.api_client",
            FAKES_APART,
            id="a driver that knows the fake it is tested with",
        ),
        pytest.param(
            "cli/clusters.py",
            "import boatyard.ledger.documents",
            CLI,
            id="a command that reads the ledger",
        ),
        pytest.param(
            "cli/__init__.py",
            "import boatyard.ledger.documents",
            CLI,
            id="a table of commands that reads the ledger",
        ),
        pytest.param(
            "cli/clusters.py",
            "import boatyard.pki.keys",
            CLI,
            id="a command that makes keys",
        ),
    ],
)
def test_a_planted_import_breaks_its_contract(
    tmp_path: Path, file: str, planted: str, contract: str
) -> None:
    house = HOUSE | {file: f"{HOUSE.get(file, '')}\n{planted}"}

    broken, _ = lint(tmp_path, house)

    assert contract in broken


def lint(folder: Path, house: dict[str, str]) -> tuple[set[str], set[str]]:
    """The names of the broken and of the kept contracts of a house built in `folder`."""
    for name, text in house.items():
        file = folder / "boatyard" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        for package in [file.parent, *file.parent.parents]:
            if package == folder:
                break
            (package / "__init__.py").touch()
        file.write_text(text)
    result = subprocess.run(
        [LINT, "--config", ROOT / ".importlinter", "--no-cache", "--no-logo"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), "NO_COLOR": "1", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.findall(r"^(.+?) (KEPT|BROKEN)\b", result.stdout, re.MULTILINE)
    assert found, result.stdout + result.stderr
    broken = {name for name, verdict in found if verdict == "BROKEN"}
    assert result.returncode == (1 if broken else 0)
    return broken, {name for name, verdict in found if verdict == "KEPT"}
