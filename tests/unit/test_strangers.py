"""What an answer could tell in passing: how long it took, and where the provider keeps its database."""

from __future__ import annotations

from typing import Any

import grpc

from boatyard.api.catalogue_cache import CatalogueCache
from boatyard.api.errors import make_failure
from boatyard.ledger.postgres_errors import translate_error
from boatyard.model.errors import Unavailable
from boatyard.model.generated.osac import ClusterTemplate, Metadata


class CountingStore:
    """Counts how often it is asked."""

    def __init__(self, *documents: Any) -> None:
        self._documents = {document.id: document for document in documents}
        self.asked = 0

    async def get(self, cls: type[Any], id: str) -> Any | None:
        self.asked += 1
        return self._documents.get(id)

    async def find(self, cls: type[Any], **_: Any) -> list[Any]:
        raise NotImplementedError

    async def list(self, cls: type[Any], **_: Any) -> Any:
        raise NotImplementedError


async def test_a_strangers_id_is_looked_up_like_one_that_nobody_has() -> None:
    store = CountingStore(ClusterTemplate(id="t1", metadata=Metadata(tenant="globex")))
    catalogue = CatalogueCache(store)
    for _ in range(2):
        assert await catalogue.get_by_id(ClusterTemplate, "t1", ("globex", "shared"))
    assert store.asked == 1, "its owner's is remembered"
    for id in ("t1", "nobody"):
        before = store.asked
        for _ in range(2):
            await catalogue.get_by_id(ClusterTemplate, id, ("acme", "shared"))
        assert store.asked == before + 2


def test_callers_are_not_told_where_the_database_is() -> None:
    cause = ConnectionRefusedError(111, "Connect call failed ('10.9.8.7', 5432)")
    error = translate_error(cause, "reading Cluster")
    assert isinstance(error, Unavailable)
    error.__cause__ = cause
    found = make_failure(error, call="Clusters/Get")
    assert found.code is grpc.StatusCode.UNAVAILABLE
    assert "10.9.8.7" not in found.message


def test_callers_are_told_of_other_troubles() -> None:
    found = make_failure(Unavailable("the server is stopping"), call="Clusters/Get")
    assert found.message == "the server is stopping"
