"""What the generic verbs read: secrets stay sealed where nobody needs them, and hidden fields answer nothing."""

from __future__ import annotations

from typing import Any

import pytest

from boatyard.api.catalogue_cache import CatalogueCache
from boatyard.api.crud import Call, Crud, _check_filter_fields, compile_predicate
from boatyard.api.kinds import KINDS, VIEWS, ResourceKind
from boatyard.model import wire
from boatyard.model.caller import Caller, CallerRole
from boatyard.model.errors import Refused
from boatyard.model.generated.boatyard import Backup
from tests.api.doors import PRIVATE, ApiEnvironment
from tests.api.roles import As

OPERATOR = Call(Caller("olga", "shared", CallerRole.OPERATOR))
CLUSTERS = VIEWS[f"{PRIVATE}.Clusters"]


@pytest.mark.asyncio(loop_scope="module")
async def test_get_and_list_never_open_a_secret(environment: ApiEnvironment) -> None:
    """Before any projection hides them: what was never opened cannot leak, not even by a bug above."""
    made = await As(environment, environment.grpc, "member").cluster(pull_secret="hunter2")
    crud = Crud(environment.ledger, CatalogueCache(environment.ledger.documents))
    request: Any = wire.message(f"{PRIVATE}.ClustersListRequest")(
        filter=f'this.id == "{made["id"]}"'
    )

    shown = await crud.get(CLUSTERS, made["id"], OPERATOR)
    listed = await crud.list(CLUSTERS, request, OPERATOR)
    clear = await crud.find(KINDS["Cluster"], made["id"], OPERATOR.caller, sealed=False)

    assert shown.spec.pull_secret == "***"
    assert [cluster.spec.pull_secret for cluster in listed.items] == ["***"]
    assert clear.spec.pull_secret == "hunter2", "there is one to open"


class KindWithHiddenStatus(ResourceKind):
    """A kind that hides a whole message from tenants."""

    @property
    def operator_only_fields(self) -> tuple[str, ...]:
        return ("status",)


@pytest.mark.parametrize(
    "filter, order",
    [
        pytest.param('this.status.hub == "boston"', "", id="a filter one level below"),
        pytest.param("has(this.status)", "", id="a filter on the whole"),
        pytest.param("", "this.status.hub desc", id="an order one level below"),
    ],
)
def test_what_is_hidden_cannot_be_asked_about_at_any_depth(filter: str, order: str) -> None:
    kind = KindWithHiddenStatus(Backup, "Backups")
    where = compile_predicate(filter, "boatyard.v1.Backup") if filter else None
    with pytest.raises(Refused) as refused:
        _check_filter_fields(kind, where, order)
    assert refused.value.reason == "BadFilter"


def test_what_is_not_hidden_may_be_asked_about() -> None:
    where = compile_predicate('this.spec.cluster == "web"', "boatyard.v1.Backup")
    _check_filter_fields(KindWithHiddenStatus(Backup, "Backups"), where, "metadata.name")
