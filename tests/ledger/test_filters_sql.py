"""Filters on a real PostgreSQL: the rows it finds are those the function over structs finds."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import HealthCheck, given, settings

from boatyard.ledger.changes import Insert, Replace
from boatyard.ledger.filters.compile import compile_filter, compile_order
from boatyard.ledger.ledger import Ledger
from boatyard.model import wire
from boatyard.model.generated.osac import Cluster
from tests.ledger.docs import NOW, cluster
from tests.support.filters import grown, leaves, population

PRIVATE = wire.message("osac.private.v1.Cluster").DESCRIPTOR
CLUSTERS = population()
_filled: set[int] = set()


async def fill(ledger: Ledger) -> None:
    """Once per ledger, however many examples are tried on it."""
    if id(ledger) not in _filled:
        await ledger.commit([Insert(doc) for doc in CLUSTERS], now=NOW)
        _filled.add(id(ledger))


async def found(ledger: Ledger, text: str) -> list[str]:
    page = await ledger.documents.list(Cluster, where=compile_filter(text, PRIVATE), limit=1000)
    assert page.total == len(page.items)
    return [doc.id for doc in page.items]


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=grown(leaves))
async def test_sql_and_the_function_over_structs_agree(ledger: Ledger, text: str) -> None:
    await fill(ledger)

    expected = [doc.id for doc in CLUSTERS if compile_filter(text, PRIVATE).matches(doc)]

    assert await found(ledger, text) == expected


async def test_the_population_tells_filters_apart(ledger: Ledger) -> None:
    """Were every answer empty, agreement would mean nothing."""
    await fill(ledger)

    for text in (
        'this.metadata.labels["env"] == "a"',
        "has(this.spec.ssh_public_key)",
        "this.status.state > 1",
    ):
        assert 0 < len(await found(ledger, text)) < len(CLUSTERS)


async def test_a_filter_does_not_lead_out_of_the_tenant(ledger: Ledger) -> None:
    await ledger.commit([Insert(cluster("a")), Insert(cluster("b", tenant="other"))], now=NOW)
    everything = compile_filter('this.id == "a" || true', PRIVATE)

    page = await ledger.documents.list(Cluster, where=everything, tenants=["acme", "shared"])

    assert [doc.id for doc in page.items] == ["a"]


@pytest.mark.parametrize(
    "order, expected",
    [
        ("", ["1", "2", "3"]),
        ("metadata.name", ["3", "2", "1"]),
        ("this.metadata.name desc", ["1", "2", "3"]),
        ("metadata.tenant", ["1", "2", "3"]),
        ("metadata.tenant desc, metadata.name", ["3", "2", "1"]),
    ],
)
async def test_lists_are_ordered_by_code_point_and_then_by_id(
    ledger: Ledger, order: str, expected: list[str]
) -> None:
    for id, name in (("1", "é"), ("2", "b"), ("3", "Z")):
        await ledger.commit([Insert(cluster(id, name=name))], now=NOW)

    page = await ledger.documents.list(Cluster, order=compile_order(order, PRIVATE))

    assert [doc.id for doc in page.items] == expected


@pytest.mark.parametrize("order", ["metadata.tenant", "metadata.tenant desc", "status.state"])
async def test_pages_with_equal_order_keys_are_in_the_order_of_ids(
    ledger: Ledger, order: str
) -> None:
    ids = [f"c{number:02}" for number in range(40)]
    for id in reversed(ids):
        await ledger.commit([Insert(cluster(id))], now=NOW)
    for id in ids[::3]:  # a change moves the row to another place in the table
        await ledger.commit([Replace(cluster(id))], now=NOW)

    pages = [
        await ledger.documents.list(
            Cluster, order=compile_order(order, PRIVATE), offset=offset, limit=7
        )
        for offset in range(0, 40, 7)
    ]

    assert [doc.id for page in pages for doc in page.items] == ids


@pytest.mark.parametrize(
    "text, index",
    [
        ('this.id == "c7" || this.metadata.name == "c7"', "documents_name"),
        ('this.id in ["c7"] || this.metadata.name in ["c7"]', "documents_pkey"),
        ('this.spec.template.id == "t7"', "documents_template"),
        ('this.status.hub == "h7"', "documents_hub"),
        ("this.status.state == 3", "documents_state"),
    ],
)
async def test_what_people_filter_by_most_is_found_by_index(
    ledger: Ledger, text: str, index: str
) -> None:
    await ledger.read(
        "filling",
        "insert into documents (kind, id, tenant, project, name, version, data)"
        " select 'Cluster', 'c' || n, 't' || n % 50, '', 'c' || n, 0, jsonb_build_object('id', 'c' || n,"
        " 'spec', jsonb_build_object('template', jsonb_build_object('id', 't' || n % 500)),"
        " 'status', jsonb_build_object('hub', 'h' || n % 500, 'state', n % 500))"
        " from generate_series(1, 5000) n",
    )
    await ledger.read("analysing", "analyze documents")
    where = compile_filter(text, PRIVATE)

    plan = await explain(ledger, where)

    assert index in plan
    assert "Seq Scan" not in plan


async def explain(ledger: Ledger, where: object) -> str:
    from boatyard.ledger.documents import _build_condition
    from boatyard.ledger.filters.conditions import Parameters

    parameters = Parameters()
    condition = _build_condition(Cluster, where, None, parameters)  # type: ignore[arg-type]
    query = f"explain select data from documents where {condition} order by id limit 100"
    rows = await ledger.read("explaining", query, *parameters.values)
    return "\n".join(row[0] for row in rows)


async def test_several_filters_at_once(ledger: Ledger) -> None:
    await fill(ledger)
    texts = [f'this.id == "{number:03}"' for number in range(20)]

    answers = await asyncio.gather(*(found(ledger, text) for text in texts))

    assert answers == [[f"{number:03}"] for number in range(20)]
