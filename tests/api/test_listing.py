"""Lists: pages, totals, order, and the filters that the contract's command line sends."""

from __future__ import annotations

from typing import Any

import pytest
import pytest_asyncio

from boatyard.model.generated.osac import ClusterVersion
from tests.api import samples
from tests.api.doors import PRIVATE, PUBLIC, ApiEnvironment, Door

pytestmark = pytest.mark.asyncio(loop_scope="module")

CLUSTERS = f"{PUBLIC}.Clusters"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def many(environment: ApiEnvironment) -> list[dict[str, Any]]:
    """Twelve clusters of acme, in the order of their creation."""
    made = []
    for number in range(12):
        body = samples.cluster(f"c{number:02}", node_sets={"compute": {"size": number + 1}})
        body["metadata"]["labels"] = {"even": str(number % 2 == 0).lower()}
        if number % 3 == 0:
            body["metadata"]["labels"]["third"] = "yes"
            body["spec"]["ssh_public_key"] = f"ssh-{number}"
        token = environment.token("member")
        made.append(await environment.grpc.call(CLUSTERS, "Create", {"object": body}, token=token))
    return made


async def _list(
    environment: ApiEnvironment, door: Door, service: str = CLUSTERS, **asked: Any
) -> Any:
    return await door.call(service, "List", asked, token=environment.token("viewer"))


def _names(listed: Any) -> list[str]:
    return [item["metadata"]["name"] for item in listed.get("items", [])]


async def test_an_empty_list_is_an_empty_object(environment: ApiEnvironment, door: Door) -> None:
    assert await _list(environment, door, f"{PUBLIC}.Projects") == {}


async def test_objects_come_in_the_order_of_their_creation(
    environment: ApiEnvironment, door: Door, many: list[dict[str, Any]]
) -> None:
    listed = await _list(environment, door)
    assert listed["items"] == many
    assert (listed["size"], listed["total"]) == (12, 12)


@pytest.mark.parametrize(
    "offset, limit, names",
    [
        (0, 3, ["c00", "c01", "c02"]),
        (10, 5, ["c10", "c11"]),
        (50, 5, []),
        (-5, 2, ["c00", "c01"]),
        (0, 0, []),
        (0, 100_000, [f"c{number:02}" for number in range(12)]),
    ],
)
async def test_pages(
    environment: ApiEnvironment,
    door: Door,
    many: list[dict[str, Any]],
    offset: int,
    limit: int,
    names: list[str],
) -> None:
    listed = await _list(environment, door, offset=offset, limit=limit)
    assert _names(listed) == names
    assert listed["total"] == 12
    assert listed.get("size", 0) == len(names)


@pytest.mark.parametrize(
    "order, first",
    [
        ("metadata.name desc", "c11"),
        ("metadata.name", "c00"),
        ("this.metadata.name desc", "c11"),
        ("spec.ssh_public_key desc, metadata.name", "c09"),
        ("metadata.creation_timestamp desc", "c11"),
    ],
)
async def test_19_order_is_obeyed(
    environment: ApiEnvironment, door: Door, many: list[dict[str, Any]], order: str, first: str
) -> None:
    assert _names(await _list(environment, door, order=order, limit=1)) == [first]


EVEN = [f"c{number:02}" for number in range(0, 12, 2)]
ODD = [f"c{number:02}" for number in range(1, 12, 2)]
THIRD = [f"c{number:02}" for number in range(0, 12, 3)]
NOT_THIRD = [f"c{number:02}" for number in range(12) if number % 3]
ALL = sorted(EVEN + ODD)


@pytest.mark.parametrize(
    "text, names",
    [
        # As the contract's command line sends them.
        ('this.id == "ID3" || this.metadata.name == "ID3"', ["c03"]),
        ('this.id == "c04" || this.metadata.name == "c04"', ["c04"]),
        ('this.id in ["c01", "c02"] || this.metadata.name in ["c01", "c02"]', ["c01", "c02"]),
        ('this.id in ["ID5"] || this.metadata.name in ["ID5"]', ["c05"]),
        ('this.metadata.tenant == "acme" && (this.metadata.name == "c01")', ["c01"]),
        ('this.metadata.tenant == "globex" && (this.metadata.name == "c01")', []),
        # What the contract's own service gets wrong (19).
        ('this.metadata.labels["third"] == "yes"', THIRD),
        ('this.metadata.labels["third"] != "yes"', NOT_THIRD),
        ('"third" in this.metadata.labels', THIRD),
        ("has(this.spec.ssh_public_key)", THIRD),
        ("!has(this.spec.ssh_public_key)", NOT_THIRD),
        ('this.spec.ssh_public_key == ""', NOT_THIRD),
        ('this.spec.ssh_public_key != "ssh-3"', [name for name in ALL if name != "c03"]),
        ("this.status.state > 0", ALL),
        ("this.status.state in [1, 2]", ALL),
        ("this.status.state == CLUSTER_STATE_PROGRESSING", ALL),
        ("this.status.state != 1", []),
        ("this.metadata.version == 0", ALL),
        ('this.metadata.name.startsWith("c1")', ["c10", "c11"]),
        ('this.metadata.name.endsWith("1")', ["c01", "c11"]),
        ('this.metadata.name.contains("0") && this.metadata.name > "c08"', ["c09", "c10"]),
        ('this.spec.node_sets["compute"].size >= 11', ["c10", "c11"]),
        ('!(this.metadata.labels["even"] == "true")', ODD),
        ('this.metadata.creation_timestamp > timestamp("2001-01-01T00:00:00Z")', ALL),
        ("this.metadata.deletion_timestamp == null", ALL),
        ('this.spec.template.id == "ocp"', ALL),
    ],
)
async def test_filters(
    environment: ApiEnvironment, door: Door, many: list[dict[str, Any]], text: str, names: list[str]
) -> None:
    for number, item in enumerate(many):
        text = text.replace(f'"ID{number}"', f'"{item["id"]}"')
    listed = await _list(environment, door, filter=text)
    assert _names(listed) == names
    assert listed.get("total", 0) == len(names)


async def test_filters_of_versions_as_the_contracts_command_line_sends_them(
    environment: ApiEnvironment, door: Door
) -> None:
    service = f"{PUBLIC}.ClusterVersions"
    for text in (
        'this.metadata.name == "4.17.1" || this.spec.version == "4.17.1"',
        '(this.id == "v4-17-1" || this.metadata.name == "v4-17-1") && this.spec.state > 0',
    ):
        assert _names(await _list(environment, door, service, filter=text, limit=2)) == ["v4-17-1"]


async def test_20_there_are_more_than_a_hundred_and_the_total_says_so(
    environment: ApiEnvironment,
) -> None:
    """Versions through the ledger, because there are many."""
    from boatyard.ledger.changes import Insert
    from boatyard.model.generated.osac import ClusterVersionSpec, Metadata

    now = environment.ledger.clock.now()
    versions = [
        ClusterVersion(
            id=f"many-{number:03}",
            metadata=Metadata(name=f"many-{number:03}", tenant="globex", creation_timestamp=now),
            spec=ClusterVersionSpec(version=f"9.{number}.0", image="x", enabled=True),
        )
        for number in range(150)
    ]
    await environment.ledger.commit([Insert(version) for version in versions], now=now)
    listed = await environment.grpc.call(
        f"{PRIVATE}.ClusterVersions",
        "List",
        {"filter": 'this.metadata.tenant == "globex"'},
        token=environment.token("operator"),
    )
    assert (listed["size"], listed["total"]) == (100, 150)
