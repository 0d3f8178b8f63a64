"""Several real processes of ours on one PostgreSQL and one twin. For end-to-end tests."""

from __future__ import annotations

import re
from pathlib import Path

from boatyard.client.client import Client
from boatyard.client.config import Target
from boatyard.ledger.embedded_postgres import EmbeddedPostgres
from boatyard.ledger.ledger import Ledger
from boatyard.ledger.schema import migrate
from boatyard.ledger.seal import Seal
from boatyard.proof.invariants import check_invariants
from boatyard.twin.client import TwinClient
from tests.support.processes import Program

ANY_PORT = ("--grpc", "127.0.0.1:0", "--rest", "127.0.0.1:0")
INSTANT = {"BOATYARD_TWIN_DELAYS": "instant"}


def address(line: str) -> str:
    """The gRPC address in a ready line."""
    found = re.search(r"gRPC (\S+?),? ", line)
    assert found, line
    return found[1]


class Distributed:
    """PostgreSQL and a twin, and any number of `serve` and `work` beside them."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.data = home / "data"
        self.data.mkdir()
        self.postgres = EmbeddedPostgres(home / "pg")
        self.programs: list[Program] = []
        self.token = ""

    async def __aenter__(self) -> Distributed:
        await self.postgres.start()
        await migrate(self.postgres.url())
        self.environ = {
            "BOATYARD_DATABASE_URL": self.postgres.url(),
            "BOATYARD_DATA": str(self.data),
            "BOATYARD_LEASE_SECONDS": "3",
            **INSTANT,
        }
        # The first catalogue comes from `up`, as it would for a person trying things out.
        with self.start("up", *ANY_PORT) as up:
            up.ready()
            self.token = (self.data / "operator.token").read_text()
            assert up.end() == 0
        self.twin = self.start("twin")
        self.twin.ready()
        return self

    async def __aexit__(self, *_: object) -> None:
        for program in self.programs:
            program.__exit__()
        await self.postgres.stop()

    def start(self, *args: str) -> Program:
        number = len(self.programs)
        program = Program(*args, home=self.home / f"{args[0]}-{number}", environ=self.environ)
        self.programs.append(program)
        return program

    def client(self, line: str) -> Client:
        return Client(Target(address=address(line), token=self.token))

    async def breaches(self, acknowledged: list[tuple[str, str, int]]) -> list[object]:
        ledger = await Ledger.open(
            self.postgres.url(),
            seal=Seal.load_or_create(self.data / "seal.key"),
            application="test",
        )
        twin = TwinClient(self.data / "twin.sock")
        try:
            await ledger.events.publish()
            return list(await check_invariants(ledger, twin, acknowledged=acknowledged))
        finally:
            await twin.close()
            await ledger.close()
