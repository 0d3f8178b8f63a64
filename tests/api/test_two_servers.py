"""Two servers on one database: what one has changed, the other goes by."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from boatyard.api.authentication import TokenIssuer
from boatyard.ledger.ledger import Ledger
from boatyard.ledger.seal import Seal
from tests.api import samples
from tests.api.doors import PRIVATE, ApiEnvironment, Failed, running
from tests.api.roles import CLUSTERS, As
from tests.support.postgres import KEY


@pytest.fixture
async def servers(
    ledger: Ledger, database_url: str, issuer: TokenIssuer
) -> AsyncIterator[list[ApiEnvironment]]:
    other = await Ledger.open(database_url, seal=Seal.from_bytes(KEY), application="other")
    try:
        async with running(ledger, issuer) as first, running(other, issuer) as second:
            await samples.stock(first)
            yield [first, second]
    finally:
        await other.close()


async def test_an_order_goes_by_the_catalogue_as_it_is_now(servers: list[ApiEnvironment]) -> None:
    """Though the second server has just read, and remembers, how it was."""
    operator, member = (
        As(servers[0], servers[0].grpc, "operator"),
        As(servers[1], servers[1].grpc, "member"),
    )
    await member.cluster()
    await operator(
        f"{PRIVATE}.ClusterTemplates",
        "Update",
        object={"id": "ocp", "node_sets": {"compute": {"size": 5}}},
        update_mask="node_sets.compute.size",
    )
    made = await member.cluster()
    assert made["spec"]["node_sets"]["compute"]["size"] == 5

    versions = await operator(f"{PRIVATE}.ClusterVersions", "List", order="spec.version desc")
    await operator(
        f"{PRIVATE}.ClusterVersions",
        "Update",
        object={"id": versions["items"][0]["id"], "spec": {"is_default": True}},
        update_mask="spec.is_default",
    )
    assert (await member.cluster())["spec"]["version"]["name"] == "v4-17-2"


async def test_what_is_gone_at_one_cannot_be_ordered_at_the_other(
    servers: list[ApiEnvironment],
) -> None:
    operator, member = (
        As(servers[0], servers[0].grpc, "operator"),
        As(servers[1], servers[1].grpc, "member"),
    )
    await operator(f"{PRIVATE}.ClusterTemplates", "Create", object=samples.template("brief"))
    shown = {"metadata": {"name": "one"}, "spec": {"template": {"name": "brief"}}}
    await servers[1].grpc.call(
        CLUSTERS, "Create", {"object": shown}, token=servers[1].token("member"), x_dry_run="true"
    )
    await operator(f"{PRIVATE}.ClusterTemplates", "Delete", id="brief")
    failed = await member.refused(CLUSTERS, "Create", object=shown)
    assert failed.code == "INVALID_ARGUMENT"
    assert "not found" in failed.violations["spec.template"]


async def test_nobody_orders_for_a_tenant_that_is_gone(servers: list[ApiEnvironment]) -> None:
    operator = As(servers[0], servers[0].grpc, "operator")
    late = As(servers[1], servers[1].grpc, "member", "initech")
    await operator(f"{PRIVATE}.Tenants", "Create", object={"metadata": {"name": "initech"}})
    body = {"object": samples.cluster("one")}
    await servers[1].grpc.call(
        CLUSTERS, "Create", body, token=servers[1].token("member", "initech"), x_dry_run="true"
    )
    await operator(f"{PRIVATE}.Tenants", "Delete", id="initech")
    with pytest.raises(Failed) as failed:
        await late(CLUSTERS, "Create", **body)
    assert failed.value.violations == {"metadata.tenant": "there is no tenant 'initech'"}
