"""Clock, ids and chance are arguments: the linter refuses them where nobody wires them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RUFF = Path(sys.executable).with_name("ruff")

NOW = "from datetime import UTC, datetime\n\nx = datetime.now(UTC)\n"


@pytest.mark.parametrize(
    "code",
    [
        pytest.param(NOW, id="now"),
        pytest.param("import datetime\n\nx = datetime.datetime.utcnow()\n", id="utcnow"),
        pytest.param("import datetime\n\nx = datetime.date.today()\n", id="today"),
        pytest.param("import time\n\nx = time.time()\n", id="time"),
        pytest.param("import uuid\n\nx = uuid.uuid4()\n", id="uuid4"),
        pytest.param("import random\n\nx = random.random()\n", id="random"),
        pytest.param("from random import choice\n\nx = choice([1])\n", id="choice"),
        pytest.param("import secrets\n\nx = secrets.token_hex()\n", id="secrets"),
    ],
)
@pytest.mark.parametrize(
    "file", ["model/metadata.py", "resources/clusters/rules.py", "resources/orders/plan.py"]
)
def test_a_pure_file_may_not_make_its_own(file: str, code: str) -> None:
    assert "TID251" in lint(f"src/boatyard/{file}", code)


def test_app_makes_them() -> None:
    assert "TID251" not in lint("src/boatyard/wiring/worker.py", NOW)


@pytest.mark.parametrize(
    "file, refused",
    [
        ("src/boatyard/engine/worker.py", False),
        ("src/boatyard/api/grpc.py", False),
        ("src/boatyard/ledger/documents.py", True),
        ("src/boatyard/infra/dns/drivers/sim.py", True),
    ],
)
def test_a_broad_catch_lives_in_the_engine_and_the_api_edge(file: str, refused: bool) -> None:
    code = "try:\n    x = 1\nexcept Exception:\n    x = 2\n"

    assert ("BLE001" in lint(file, code)) is refused


def lint(file: str, code: str) -> str:
    command = [RUFF, "check", "--no-cache", "--output-format=concise", "--stdin-filename", file]
    result = subprocess.run(
        [*command, "-"], cwd=ROOT, input=code, capture_output=True, text=True, check=False
    )
    assert result.returncode in (0, 1), result.stderr
    return result.stdout
