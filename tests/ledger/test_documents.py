"""What the ledger promises about documents: all or nothing, guarded by version, secrets sealed."""

from __future__ import annotations

import asyncpg
import msgspec
import pytest

from boatyard.ledger.changes import Archive, Due, EventNote, Insert, Replace, Signal
from boatyard.ledger.ledger import Ledger
from boatyard.ledger.records import DuplicateDocument
from boatyard.ledger.seal import Seal
from boatyard.model.errors import Conflict, NotFound, Refused
from boatyard.model.generated.osac import Cluster, ClusterSpec, Hub, HubSpec, Metadata
from tests.ledger.docs import NOW, at, cluster, deleting, read_at, with_metadata


async def test_what_is_inserted_is_read_back_with_version_0(ledger: Ledger) -> None:
    doc = with_metadata(cluster("a"), labels={"env": "dev"}, finalizers=("x",))

    await ledger.commit([Insert(doc)], now=NOW)

    assert await ledger.documents.get(Cluster, "a") == doc
    assert await ledger.documents.get(Cluster, "b") is None


async def test_a_replace_is_stored_with_one_version_more(ledger: Ledger) -> None:
    doc = cluster("a")
    await ledger.commit([Insert(doc)], now=NOW)

    await ledger.commit([Replace(doc)], now=NOW)
    await ledger.commit([Replace(read_at(doc, 1))], now=NOW)

    assert await ledger.documents.get(Cluster, "a") == read_at(doc, 2)


async def test_a_replace_of_a_stale_version_is_a_conflict_and_stores_nothing(
    ledger: Ledger,
) -> None:
    doc = cluster("a")
    await ledger.commit([Insert(doc)], now=NOW)
    await ledger.commit([Replace(doc)], now=NOW)

    with pytest.raises(Conflict):
        await ledger.commit([Insert(cluster("b")), Replace(with_metadata(doc, name="c"))], now=NOW)

    assert await ledger.documents.get(Cluster, "a") == read_at(doc, 1)
    assert await ledger.documents.get(Cluster, "b") is None


async def test_an_archive_at_a_stale_version_is_a_conflict_and_the_newer_document_stays(
    ledger: Ledger,
) -> None:
    doc = cluster("a")
    newer = with_metadata(doc, name="newer")
    await ledger.commit([Insert(doc)], now=NOW)
    await ledger.commit([Replace(newer)], now=NOW)

    with pytest.raises(Conflict):
        await ledger.commit([Insert(cluster("b")), Archive(deleting(doc))], now=NOW)

    assert await ledger.documents.get(Cluster, "a") == read_at(newer, 1)
    assert await ledger.documents.get_archived(Cluster, "a") is None
    assert await ledger.documents.get(Cluster, "b") is None


@pytest.mark.parametrize("change", [Replace, Archive])
async def test_what_is_gone_is_not_found(
    ledger: Ledger, change: type[Replace] | type[Archive]
) -> None:
    with pytest.raises(NotFound):
        await ledger.commit([change(cluster("a"))], now=NOW)


async def test_an_id_or_a_name_is_taken_once_and_the_error_says_which(ledger: Ledger) -> None:
    await ledger.commit([Insert(cluster("a", name="one"))], now=NOW)

    with pytest.raises(DuplicateDocument) as same_id:
        await ledger.commit([Insert(cluster("a", name="two"))], now=NOW)
    with pytest.raises(DuplicateDocument) as same_name:
        await ledger.commit([Insert(cluster("b", name="one"))], now=NOW)
    await ledger.commit([Insert(cluster("b", name="one", tenant="other"))], now=NOW)

    assert (same_id.value.field, same_name.value.field) == ("id", "name")


async def test_renaming_onto_a_taken_name_is_refused(ledger: Ledger) -> None:
    await ledger.commit([Insert(cluster("a")), Insert(cluster("b"))], now=NOW)

    with pytest.raises(DuplicateDocument):
        await ledger.commit([Replace(with_metadata(cluster("a"), name="b"))], now=NOW)


async def test_what_has_no_name_is_not_in_anybodys_way(ledger: Ledger) -> None:
    nameless = Metadata(tenant="acme")

    await ledger.commit(
        [Insert(Cluster(id="a", metadata=nameless)), Insert(Cluster(id="b", metadata=nameless))],
        now=NOW,
    )

    assert set(await ledger.documents.get_many(Cluster, ["a", "b", "c"])) == {"a", "b"}


async def test_the_archive_keeps_the_last_state_and_frees_id_and_name(ledger: Ledger) -> None:
    doc = cluster("a", name="one")
    await ledger.commit([Insert(doc)], now=NOW)
    await ledger.commit([Archive(doc, EventNote("Gone", "bye"))], now=NOW)

    assert await ledger.documents.get(Cluster, "a") is None
    assert await ledger.documents.get_archived(Cluster, "a") == doc
    await ledger.commit([Insert(doc)], now=NOW)
    second = with_metadata(doc, description="second")
    await ledger.commit([Replace(second)], now=NOW)
    await ledger.commit([Archive(read_at(second, 1))], now=at(1))
    newest = await ledger.documents.find_archived(Cluster, "one", ["acme"])
    assert newest == read_at(second, 1)
    assert await ledger.documents.find_archived(Cluster, "one", ["stranger"]) is None


async def test_find_by_name_stays_inside_the_given_tenants(ledger: Ledger) -> None:
    mine, theirs = cluster("a", name="n"), cluster("b", name="n", tenant="other")
    await ledger.commit([Insert(mine), Insert(theirs)], now=NOW)

    assert await ledger.documents.find(Cluster, name="n", tenants=["acme", "shared"]) == [mine]
    assert await ledger.documents.find(Cluster, name="n", tenants=None) == [mine, theirs]
    assert await ledger.documents.find(Cluster, name="n", tenants=["acme"], project="p") == []


async def test_pages_are_ordered_by_id_and_counted(ledger: Ledger) -> None:
    docs = [cluster(f"c{number:02}") for number in range(25)]
    await ledger.commit([Insert(doc) for doc in docs], now=NOW)
    await ledger.commit([Insert(cluster("x", tenant="other"))], now=NOW)

    first = await ledger.documents.list(Cluster, tenants=["acme"], limit=10)
    last = await ledger.documents.list(Cluster, tenants=["acme", "shared"], offset=20, limit=10)
    beyond = await ledger.documents.list(Cluster, tenants=["acme"], offset=90, limit=10)
    counted = await ledger.documents.list(Cluster, limit=0)

    assert (list(first.items), first.total) == (docs[:10], 25)
    assert (list(last.items), last.total) == (docs[20:], 25)
    assert (beyond.items, beyond.total) == ((), 25)
    assert (counted.items, counted.total) == ((), 26)


async def test_nothing_is_visible_to_no_tenant(ledger: Ledger) -> None:
    await ledger.commit([Insert(cluster("a"))], now=NOW)

    assert (await ledger.documents.list(Cluster, tenants=[])).items == ()
    assert await ledger.documents.find(Cluster, name="a", tenants=[]) == []


@pytest.mark.parametrize("text", ["a\0b", "a\ud800b"], ids=["NUL", "lone surrogate"])
async def test_text_that_cannot_be_kept_is_refused(ledger: Ledger, text: str) -> None:
    with pytest.raises(Refused):
        await ledger.commit([Insert(with_metadata(cluster("a"), description=text))], now=NOW)
    with pytest.raises(Refused):
        await ledger.documents.get(Cluster, text)

    assert await ledger.documents.get(Cluster, "a") is None


async def test_a_name_too_long_for_an_index_is_refused(ledger: Ledger) -> None:
    noise = "".join(chr(33 + number * 7919 % 20000) for number in range(5000))

    with pytest.raises(Refused):
        await ledger.commit([Insert(cluster("a", name=noise))], now=NOW)


async def test_a_commit_is_one_statement(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []
    plain = ledger._connections._pool.fetch

    async def spy(query: str, args: object) -> object:
        sent.append(query)
        return await plain(query, args)  # type: ignore[arg-type]

    monkeypatch.setattr(ledger._connections._pool, "fetch", spy)
    await ledger.commit(
        [Insert(cluster("a")), Insert(cluster("b")), Due("Cluster", "a", NOW)], now=NOW
    )

    assert sent == ["select boatyard_commit($1)"]


async def test_whoever_proves_crashes_is_told_before_and_after_every_write(
    database_url: str, seal: Seal
) -> None:
    told: list[str] = []
    ledger = await Ledger.open(database_url, seal=seal, application="test", on_write=told.append)

    await ledger.commit([Insert(cluster("a")), Due("Cluster", "a", NOW)], now=NOW)
    await ledger.claims.claim("vlan", ["1"], "a", now=NOW)
    with pytest.raises(DuplicateDocument):
        await ledger.commit([Insert(cluster("a"))], now=NOW)
    await ledger.close()

    assert told == [
        "before:commit:Insert Cluster, Due Cluster",
        "after:commit:Insert Cluster, Due Cluster",
        "before:claim:vlan",
        "after:claim:vlan",
        "before:commit:Insert Cluster",
    ]


# --- secrets ---------------------------------------------------------------------------------------


async def test_secrets_are_sealed_at_rest_masked_in_events_and_open_to_the_reader(
    ledger: Ledger, database_url: str
) -> None:
    doc = cluster("a", pull_secret="hunter2")
    hub = Hub(id="h", metadata=Metadata(name="h"), spec=HubSpec(kubeconfig=b"hunter2"))
    await ledger.commit(
        [Insert(doc), Insert(hub), Signal("Cluster", "a", "acme", EventNote("R", "m"))], now=NOW
    )
    await ledger.commit([Replace(doc)], now=NOW)
    await ledger.events.publish()

    connection = await asyncpg.connect(database_url)
    stored = await connection.fetchval("select string_agg(data::text, '') from documents")
    shown = await connection.fetchval("select string_agg(data::text, '') from events")
    await connection.close()

    assert "hunter2" not in stored + shown
    assert "aHVudGVyMg" not in stored + shown  # in base64
    assert stored.count("seal:v1:") == 2
    assert "seal:v1:" not in shown
    assert await ledger.documents.get(Cluster, "a") == read_at(doc, 1)
    assert await ledger.documents.get(Hub, "h") == hub
    masked = await ledger.documents.get(Cluster, "a", sealed=True)
    assert masked is not None
    assert masked.spec.pull_secret == "***"
    masked_hub = await ledger.documents.get(Hub, "h", sealed=True)
    assert masked_hub is not None
    assert masked_hub.spec.kubeconfig == b"***"
    events = await ledger.events.list_after(0, 10, kinds=["Hub"])
    assert events[0].doc is not None
    assert msgspec.json.decode(events[0].doc, type=Hub).spec.kubeconfig == b"***"


async def test_a_sealed_text_is_of_no_use_in_another_place(
    ledger: Ledger, database_url: str
) -> None:
    await ledger.commit(
        [Insert(cluster("a", pull_secret="hunter2")), Insert(cluster("b", pull_secret="other"))],
        now=NOW,
    )
    connection = await asyncpg.connect(database_url)
    await connection.execute(
        "update documents set data = jsonb_set(data, '{spec,pull_secret}',"
        " (select data #> '{spec,pull_secret}' from documents where id = 'a')) where id = 'b'"
    )
    await connection.close()

    with pytest.raises(Refused):
        await ledger.documents.get(Cluster, "b")


async def test_another_key_is_refused_when_the_ledger_opens(
    ledger: Ledger, database_url: str
) -> None:
    with pytest.raises(Refused, match="seal key"):
        await Ledger.open(database_url, seal=Seal.from_bytes(b"x" * 32), application="test")


async def test_an_empty_message_is_stored_like_no_message(
    ledger: Ledger, database_url: str
) -> None:
    await ledger.commit([Insert(Cluster(id="a", spec=ClusterSpec()))], now=NOW)

    connection = await asyncpg.connect(database_url)
    stored = await connection.fetchval("select data::text from documents")
    await connection.close()

    assert stored == '{"id": "a"}'
