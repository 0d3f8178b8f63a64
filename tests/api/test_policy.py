"""Who may do what, and what strangers learn: the whole table over both doors."""

from __future__ import annotations

from typing import Any, cast

import pytest

from boatyard.api import policy
from boatyard.api.calls import methods
from boatyard.api.crud import Crud
from boatyard.api.kinds import KINDS, VIEWS
from boatyard.api.policy import TABLE, VERB_OF_CALL, Verb
from boatyard.ledger.changes import Insert
from boatyard.model.caller import Caller, Role
from boatyard.model.generated.boatyard import Credentials, Order, OrderStatus
from boatyard.model.generated.osac import Metadata
from boatyard.model.generated.rest import ROUTES
from tests.api.backups import BACKUPS, finished_backup
from tests.api.doors import OURS, PRIVATE, PUBLIC, Door, Failed, Yard
from tests.api.samples import SAMPLES

together = pytest.mark.asyncio(loop_scope="module")

ROLES = ("operator", "admin", "member", "viewer", "none")
BY_KIND = {sample.kind: sample for sample in SAMPLES}
CLUSTERWISE = (f"{OURS}.Orders", f"{OURS}.Access", f"{OURS}.Stories")  # their calls name a cluster

HUBWISE = f"{OURS}.Hubs"
TEMPLATEWISE = f"{OURS}.Templates"
RUNWISE = f"{OURS}.RoleRuns"
KEPT = ("Order", "Leftover", "TemplateSource")  # by the service itself

# (service, call, kind) of everything that is served, made from the server's own table below.
_CALLS = methods(Crud(cast(Any, None), cast(Any, None)), cast(Any, None))  # only looked at
SERVED = [
    (name, rpc, method)
    for name, calls in _CALLS.items()
    for rpc, method in calls.items()
    if method.served
]


def _bound(service: str, rpc: str) -> bool:
    return any((route.service, route.rpc) == (service, rpc) for route in ROUTES)


def _kind_of(service: str, rpc: str) -> str:
    _package, _, name = service.rpartition(".")
    if service in CLUSTERWISE and rpc not in ("Get", "List"):
        return "Cluster"
    if service in VIEWS:
        return VIEWS[service].kind.name
    if service == HUBWISE:
        return "Hub"
    if service == TEMPLATEWISE:
        return "ClusterTemplate"
    if service == RUNWISE:
        return "RoleRun"
    return {"Events": "Event", "Capabilities": "Capabilities"}[name]


def test_every_kind_has_a_row_and_every_call_a_verb() -> None:
    assert set(KINDS) <= set(TABLE)
    for service, rpc, _ in SERVED:
        kind, verb = _kind_of(service, rpc), VERB_OF_CALL[rpc]
        assert verb in TABLE[kind], f"{service}/{rpc}"


def test_every_method_of_the_contract_is_there() -> None:
    ours = [service for service in _CALLS if service.startswith(OURS)]
    assert len(_CALLS) - len(ours) == 34 + 36
    assert sum(len(calls) for calls in _CALLS.values()) > 300


@pytest.mark.parametrize("kind", sorted(TABLE))
def test_who_reads_less_never_writes_more(kind: str) -> None:
    order = [Role.VIEWER, Role.MEMBER, Role.ADMIN, Role.OPERATOR]
    for verb, roles in TABLE[kind].items():
        allowed = [role in roles for role in order]
        assert allowed == sorted(allowed), f"{verb} of {kind}"


def test_the_private_package_is_for_operators() -> None:
    for kind in TABLE:
        for verb in Verb:
            for role in (Role.ADMIN, Role.MEMBER, Role.VIEWER):
                assert not policy.allowed(Caller("ann", "acme", role), verb, kind, private=True)


@pytest.fixture(scope="module")
def own(yard: Yard) -> dict[str, str]:
    """Ids of objects of tenant acme (or shared ones), by kind; filled on first use."""
    return {}


async def _object(yard: Yard, kind: str, own: dict[str, str]) -> str:
    if kind == "Backup" and kind not in own:
        own[kind] = (await finished_backup(yard))["id"]
    if kind not in own:
        sample = BY_KIND[kind]
        body = {"object": sample.fresh()}
        made = await yard.grpc.call(
            f"{PRIVATE}.{sample.service}", "Create", body, token=yard.token("operator")
        )
        own[kind] = made["id"]
        if kind == "Cluster":
            await _finished_order(yard, made["id"])
    return own[kind]


async def _finished_order(yard: Yard, id: str, tenant: str = "acme") -> None:
    order = Order(
        id=id,
        metadata=Metadata(
            name=f"order-{id}", tenant=tenant, creation_timestamp=yard.ledger.clock.now()
        ),
        status=OrderStatus(credentials=Credentials(kubeconfig="kube: config", password="secret")),
    )
    await yard.ledger.commit([Insert(order)], now=yard.ledger.clock.now())


def _body(service: str, rpc: str, id: str) -> dict[str, Any]:
    if service in CLUSTERWISE and rpc not in ("Get", "List"):
        return {"cluster": id}
    if service == HUBWISE:
        return {"hub": id}
    if service == RUNWISE:
        return {"order": id}
    if service == TEMPLATEWISE:
        return {"role": id} if rpc == "Publish" else {"template": id}
    match rpc:
        case "List" | "Watch":
            return {}
        case "Get" if service.endswith("Capabilities"):
            return {}
        case "Update":
            return {"object": {"id": id}}
        case "Create" if service == BACKUPS:
            return {"object": {"metadata": {"name": "x"}, "spec": {"cluster": id}}}
        case "Create":
            sample = BY_KIND[VIEWS[service].kind.name]
            made = sample.fresh(service.rpartition(".")[0])
            made["metadata"].pop("tenant", None)
            if service.startswith(PUBLIC):
                made.get("spec", {}).pop("image", None)
            return {"object": made}
        case _:
            return {"id": id}


CASES = [
    pytest.param(service, rpc, id=f"{service}/{rpc}")
    for service, rpc, method in SERVED
    if not method.streaming and not method.anonymous
]


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("service, rpc", CASES)
@together
async def test_the_table_is_what_both_doors_do(
    yard: Yard, own: dict[str, str], service: str, rpc: str, role: str
) -> None:
    kind = _kind_of(service, rpc)
    target = "Cluster" if kind in (*KEPT, "Capabilities", "RoleRun") else kind
    id = await _object(yard, target, own)
    private = service.startswith(PRIVATE) or kind in (*KEPT, "Hub")
    expected = "UNAUTHENTICATED"
    if role != "none":
        caller = Caller("ann", "acme", Role(role))
        allowed = policy.allowed(caller, VERB_OF_CALL[rpc], kind, private=private)
        expected = "" if allowed else "PERMISSION_DENIED"
    token = yard.token(role) if role != "none" else ""
    for door in (yard.grpc, yard.rest):
        if rpc == "Delete" and expected == "":
            continue  # shown by the CRUD suite; here the object is needed by the next case
        if door.name == "rest" and not _bound(service, rpc):
            continue
        code = await _code(door, service, rpc, id, token)
        if expected:
            assert code == expected, door.name
        else:
            assert code not in ("UNAUTHENTICATED", "PERMISSION_DENIED", "INTERNAL"), door.name


async def _code(door: Door, service: str, rpc: str, id: str, token: str) -> str:
    try:
        await door.call(service, rpc, _body(service, rpc, id), token=token)
    except Failed as failed:
        return failed.code
    return "OK"


STRANGER = [
    (service, rpc)
    for service, rpc, method in SERVED
    if not method.streaming
    and service.startswith((PUBLIC, OURS))
    and rpc not in ("List", "Create")
    and not method.anonymous
    and _kind_of(service, rpc) in ("Cluster", "Project", "Tenant", "Backup")
]


@pytest.mark.parametrize("role", ["admin", "member", "viewer"])
@pytest.mark.parametrize(
    "name, service, rpc",
    [
        pytest.param(name, *one, id="/".join((name, *one)))
        for one in STRANGER
        for name in ("grpc", "rest")
        if name == "grpc" or _bound(*one)
    ],
)
@together
async def test_a_strangers_object_is_answered_like_none(
    yard: Yard, own: dict[str, str], name: str, service: str, rpc: str, role: str
) -> None:
    door = yard.door(name)
    theirs = await _object(yard, _kind_of(service, rpc), own)
    token = yard.token(role, "globex")
    answers = []
    for id in (theirs, "0" * len(theirs)):
        with pytest.raises(Failed) as failed:
            await door.call(service, rpc, _body(service, rpc, id), token=token)
        answers.append((failed.value.code, failed.value.message.replace(id, "ID")))
    assert answers[0] == answers[1]
    assert answers[0][0] in ("NOT_FOUND", "PERMISSION_DENIED")


@pytest.mark.parametrize("role", ["admin", "member", "viewer"])
@together
async def test_lists_and_filters_show_own_and_shared_only(
    yard: Yard, door: Door, own: dict[str, str], role: str
) -> None:
    for kind in ("Cluster", "Project", "Tenant"):
        theirs = await _object(yard, kind, own)
        for text in (
            "",
            f'this.id == "{theirs}"',
            'this.metadata.tenant == "acme"',
            'this.metadata.tenant == "globex" || this.metadata.tenant != "globex"',
            f'!(this.id == "nothing") || this.id == "{theirs}"',
        ):
            body = {"filter": text} if text else {}
            listed = await door.call(
                f"{PUBLIC}.{BY_KIND[kind].service}", "List", body, token=yard.token(role, "globex")
            )
            found = {item["metadata"]["tenant"] for item in listed.get("items", [])}
            assert found <= {"globex", "shared"}
            assert listed.get("total", 0) == len(listed.get("items", []))


@together
async def test_a_tenant_cannot_create_for_another(yard: Yard, door: Door) -> None:
    """The answer does not depend on whether that other exists."""
    answers = []
    for tenant in ("globex", "nobody", "shared", "system"):
        body = {"metadata": {"name": "x", "tenant": tenant}, "spec": {"template": {"name": "ocp"}}}
        with pytest.raises(Failed) as failed:
            await door.call(
                f"{PUBLIC}.Clusters", "Create", {"object": body}, token=yard.token("member")
            )
        answers.append((failed.value.code, failed.value.message.replace(tenant, "T")))
    assert set(answers) == {("PERMISSION_DENIED", "the tenant 'T' cannot be assigned")}


@together
async def test_an_id_is_not_an_oracle(yard: Yard, door: Door, own: dict[str, str]) -> None:
    theirs = await _object(yard, "Cluster", own)
    for id in (theirs, "free-to-take"):
        body = {"id": id, "metadata": {"name": "x"}, "spec": {"template": {"name": "ocp"}}}
        with pytest.raises(Failed) as failed:
            await door.call(
                f"{PUBLIC}.Clusters",
                "Create",
                {"object": body},
                token=yard.token("member", "globex"),
            )
        assert failed.value.code == "INVALID_ARGUMENT"
        assert failed.value.violations == {"id": "is chosen by the service; leave it out"}


@together
async def test_names_of_strangers_are_free(yard: Yard, door: Door) -> None:
    for tenant in ("acme", "globex"):
        body = {"metadata": {"name": f"same-{door.name}"}, "spec": {"template": {"name": "ocp"}}}
        await door.call(
            f"{PUBLIC}.Clusters", "Create", {"object": body}, token=yard.token("member", tenant)
        )


@together
async def test_a_reference_to_a_stranger_is_not_found(yard: Yard, door: Door) -> None:
    """Also for an operator who acts for a tenant."""
    operator = yard.token("operator")
    secret = {"metadata": {"name": f"private-{door.name}", "tenant": "globex"}, "title": "x"}
    made = await yard.grpc.call(
        f"{PRIVATE}.ClusterTemplates", "Create", {"object": secret}, token=operator
    )
    for key in ({"id": made["id"]}, {"name": f"private-{door.name}"}):
        for token, tenant in ((yard.token("member"), ""), (operator, "acme")):
            body = {"metadata": {"name": "x", "tenant": tenant}, "spec": {"template": key}}
            with pytest.raises(Failed) as failed:
                await door.call(f"{PUBLIC}.Clusters", "Create", {"object": body}, token=token)
            assert failed.value.code == "INVALID_ARGUMENT"
            assert "not found" in failed.value.violations["spec.template"]


@together
async def test_shared_objects_are_seen_and_not_changed(yard: Yard, door: Door) -> None:
    body = {"metadata": {"name": f"common-{door.name}"}, "spec": {"template": {"name": "ocp"}}}
    made = await yard.grpc.call(
        f"{PUBLIC}.Clusters", "Create", {"object": body}, token=yard.token("operator")
    )
    await _finished_order(yard, made["id"], "shared")
    assert made["metadata"]["tenant"] == "shared"
    token = yard.token("admin", "globex")
    assert await door.call(f"{PUBLIC}.Clusters", "Get", {"id": made["id"]}, token=token) == made
    for rpc, asked in (
        ("Update", {"object": {"id": made["id"], "metadata": {"labels": {"a": "b"}}}}),
        ("Delete", {"id": made["id"]}),
        ("GetKubeconfigViaHttp", {"id": made["id"]}),
    ):
        with pytest.raises(Failed) as failed:
            await door.call(f"{PUBLIC}.Clusters", rpc, asked, token=token)
        assert failed.value.code == "PERMISSION_DENIED"


@together
async def test_credentials_are_for_those_who_may_change_the_cluster(
    yard: Yard, door: Door, own: dict[str, str]
) -> None:
    id = await _object(yard, "Cluster", own)
    service = f"{PUBLIC}.Clusters"
    for role in ("member", "admin", "operator"):
        token = yard.token(role)
        assert await door.call(service, "GetKubeconfigViaHttp", {"id": id}, token=token) == (
            "kube: config"
        )
        assert await door.call(service, "GetPasswordViaHttp", {"id": id}, token=token) == "secret"
    member = yard.token("member")
    shown = await yard.grpc.call(service, "GetKubeconfig", {"id": id}, token=member)
    assert shown == {"kubeconfig": "kube: config"}
    shown = await yard.grpc.call(service, "GetPassword", {"id": id}, token=member)
    assert shown == {"password": "secret"}
    for rpc in ("GetKubeconfigViaHttp", "GetPasswordViaHttp"):
        with pytest.raises(Failed) as failed:
            await door.call(service, rpc, {"id": id}, token=yard.token("viewer"))
        assert failed.value.code == "PERMISSION_DENIED"
    shown = await door.call(f"{OURS}.Orders", "Get", {"id": id}, token=yard.token("operator"))
    assert shown["status"]["credentials"] == {"kubeconfig": "***", "password": "***"}
