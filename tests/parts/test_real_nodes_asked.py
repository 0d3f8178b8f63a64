"""Orders of real nodes are refused before they are stored where the keeper would refuse them."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from boatyard.model.caller import Caller, CallerRole
from boatyard.model.errors import Refused
from boatyard.model.generated.osac import (
    Cluster,
    ClusterSpec,
    ClusterTemplate,
    ClusterTemplateReference,
    Metadata,
)
from boatyard.platforms.drivers.local import keeper, server
from boatyard.platforms.drivers.local.real import requirements
from boatyard.resources.admission_context import AdmissionContext
from boatyard.wiring.real_nodes_preflight import RealNodesPreflight
from boatyard.wiring.seed_local_catalogue import HUB_LABELS
from tests.support.real_clusters.local_cluster import WANTED

TEMPLATE = ClusterTemplateReference(id="t", name="t")
REAL = {"nodes": {"@type": "type.googleapis.com/google.protobuf.StringValue", "value": "real"}}
SIMULATED = {"nodes": {**REAL["nodes"], "value": "simulated"}}


@pytest.fixture
def place() -> Iterator[Path]:
    """Short, because a socket lives in it."""
    path = Path(tempfile.mkdtemp(prefix="by-"))
    yield path
    shutil.rmtree(path)


@asynccontextmanager
async def a_keeper(place: Path, *, real_nodes: bool) -> AsyncIterator[RealNodesPreflight]:
    socket = place / "k.sock"
    serving = asyncio.create_task(
        server.serve(place, socket, assets=place, twin=str(place / "t"), real_nodes=real_nodes)
    )
    while not socket.exists():
        assert not serving.done()
        await asyncio.sleep(0.01)
    try:
        yield RealNodesPreflight(socket)
    finally:
        client = server.TwinClient(socket)
        await client.call("keeper.shutdown")
        await client.close()
        await serving


def ask(consulted: RealNodesPreflight, *, says: str = "", **spec: object) -> asyncio.Future[None]:
    wanted = {"hub_labels": HUB_LABELS, "template": TEMPLATE, "template_parameters": REAL} | spec
    cluster = Cluster(metadata=Metadata(name="web"), spec=ClusterSpec(**wanted))
    template = ClusterTemplate(id="t", platform_settings={"nodes": says} if says else {})
    world = AdmissionContext(
        now=datetime(2026, 1, 1, tzinfo=UTC),
        caller=Caller(user="ann", tenant="acme", role=CallerRole.MEMBER),
        documents={("ClusterTemplate", "t"): template},
    )
    return asyncio.ensure_future(consulted(cluster, world))


async def test_real_nodes_are_off_unless_an_operator_switched_them_on(place: Path) -> None:
    async with a_keeper(place, real_nodes=False) as consulted:
        with pytest.raises(Refused) as refused:
            await ask(consulted)
        assert refused.value.reason == "RealNodesOff"
        assert refused.value.violations[0].path == "spec.template_parameters.nodes"
        assert "--real-nodes" in refused.value.violations[0].remedy
        with pytest.raises(Refused) as refused:
            await ask(consulted, template_parameters={}, says="real")
        assert refused.value.violations[0].path == "spec.template"


async def test_what_the_machine_lacks_is_told(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirements, "_PLUGIN_DIRECTORIES", (place / "cni",))
    async with a_keeper(place, real_nodes=True) as consulted:
        with pytest.raises(Refused) as refused:
            await ask(consulted)
    assert refused.value.reason == "NoRealNodes"
    assert "apt install containernetworking-plugins" in str(refused.value)


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"template_parameters": SIMULATED, "says": "real"}, id="simulated nodes"),
        pytest.param({"template_parameters": {}}, id="nothing said of nodes"),
        pytest.param({"hub_labels": {}}, id="a hub that simulates all of it"),
    ],
)
async def test_other_orders_are_let_through(place: Path, spec: dict[str, object]) -> None:
    async with a_keeper(place, real_nodes=False) as consulted:
        await ask(consulted, **spec)


async def test_without_a_keeper_nobody_is_asked(place: Path) -> None:
    await ask(RealNodesPreflight(place / "k.sock"))


@pytest.mark.parametrize("real_nodes, reason", [(False, "RealNodesOff"), (True, "NoRealNodes")])
async def test_the_keeper_refuses_them_itself_before_it_makes_anything(
    place: Path, monkeypatch: pytest.MonkeyPatch, *, real_nodes: bool, reason: str
) -> None:
    monkeypatch.setattr(requirements, "_PLUGIN_DIRECTORIES", (place / "cni",))
    follow = server.TwinNodeBackend(str(place / "t"), real_nodes=real_nodes)
    kept = keeper.Keeper(place, programs=_Programs(), node_backend=follow)
    wanted = {**vars(WANTED), "parameters": {"nodes": "real"}}
    with pytest.raises(Refused) as refused:
        await kept.ensure_cluster("web/cluster", "local", wanted)
    assert refused.value.reason == reason
    assert list(kept.records) == []
    await follow.close()


class _Programs:
    def versions(self) -> tuple[str, ...]:
        return (WANTED.version,)

    def program(self, version: str, name: str) -> Path:
        raise AssertionError("nothing is started")
