"""The road of docs/guide/hubs.md against a live `boatyard up` and a real API server: what each command prints.

UPDATE_GOLDENS=1 writes what is printed now; read the difference before keeping it.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.control_plane import ControlPlane, control_plane
from tests.support.distributed import ANY_PORT
from tests.support.kube_hub.equipped_hub import EquippedHub, open_equipped_hub
from tests.support.processes import Program, run

pytestmark = pytest.mark.real

GOLDENS = Path(__file__).parent / "goldens" / "hubs"
MASKS = (
    (r"127\.0\.0\.1:\d+", "ADDRESS"),
    (r"\bv1\.\d+\.\d+\b", "VERSION"),
    (r"\b(\d+m)?\d+s\b", "TOOK"),
    (r"(?<=\S) {2,}", "  "),  # columns are as wide as what was masked
    (r"(?m)^operator's rights .*\n", ""),  # of the operator that is shipped
)


@pytest.fixture
def plane() -> Iterator[ControlPlane]:
    with control_plane() as plane:
        yield plane


class HubTerminal:
    """Commands typed at one `boatyard up`; all that was printed is kept."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.printed = ""

    async def type(self, *words: str, code: int = 0, golden: str = "") -> str:
        done = await asyncio.to_thread(run, *words, home=self.home)
        self.printed += done.stdout + done.stderr
        assert done.returncode == code, done.stdout + done.stderr
        text = done.stdout + done.stderr
        for pattern, mask in MASKS:
            text = re.sub(pattern, mask, text)
        if golden:
            self._compare(golden, text)
        return text

    def _compare(self, name: str, text: str) -> None:
        path = GOLDENS / f"{name}.txt"
        if os.environ.get("UPDATE_GOLDENS"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        assert text == path.read_text()

    async def until(self, words: str, *typed: str) -> None:
        async with asyncio.timeout(60):
            while words not in await self.type(*typed):
                pass  # a command takes its time


async def test_a_hub_from_the_first_word_to_the_last(plane: ControlPlane, home: Path) -> None:
    terminal = HubTerminal(home)
    words = ("up", "--data", str(home / "data"), *ANY_PORT)
    with Program(*words, home=home, environ={"USER": "harbour"}) as up:
        assert up.ready().startswith("boatyard: ready")
        async with open_equipped_hub(plane) as equipped_hub:
            await the_road(terminal, equipped_hub, home)
            tokens = [json.loads(equipped_hub.kubeconfig)["users"][0]["user"]["token"]]
        assert up.end(signal.SIGTERM) == 0
        shown = terminal.printed + up.log.read_text()
    assert [token for token in tokens if token in shown] == []


async def the_road(terminal: HubTerminal, equipped_hub: EquippedHub, home: Path) -> None:
    hub, new = home / "hub.yaml", home / "new.yaml"
    hub.write_bytes(equipped_hub.kubeconfig)
    new.write_bytes(await equipped_hub.service_kubeconfig())
    words = ["create", "hub", "lyon-2", "--kubeconfig", str(hub), "--zone", "lyon"]
    words += ["--driver", "platform=hosted", "--setting", "hosted.platform=Agent"]
    words += ["--setting", "hosted.agent-namespace=boatyard-system"]
    await terminal.type(*words, code=1, golden="create")
    await terminal.type("hub", "check", "lyon-2", code=1, golden="check-bare")
    await terminal.type("hub", "prepare", "lyon-2", code=1, golden="prepare")

    await equipped_hub.complete()
    await equipped_hub.let_operator_do_anything()
    await equipped_hub.renew_lease(ago=-600)  # for as long as this takes
    await terminal.type("hub", "check", "lyon-2", golden="check")
    await terminal.until("State:  READY", "describe", "hub", "lyon-2")
    await terminal.type("describe", "hub", "lyon-2", golden="describe")

    await terminal.type("hub", "credentials", "lyon-2", "--kubeconfig", str(new), golden="renew")
    await terminal.type("cordon", "hub", "lyon-2", golden="cordon")
    assert "yes" in await terminal.type("get", "hubs", "lyon-2")
    await terminal.type("uncordon", "hub", "lyon-2", golden="uncordon")
    await terminal.type("delete", "hub", "lyon-2", golden="delete")
    await terminal.type("hub", "check", "lyon-2", code=3, golden="gone")
