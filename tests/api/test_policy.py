"""Who may do what, and what strangers learn: both doors answer as the table written by hand says."""

from __future__ import annotations

from typing import Any

import pytest
import pytest_asyncio

from boatyard.api.kinds import VIEWS, WRITABLE_KINDS
from boatyard.ledger.changes import Insert
from boatyard.model import wire
from boatyard.model.generated.boatyard import (
    Credentials,
    Leftover,
    Order,
    OrderStatus,
    Receipt,
    TemplateSource,
)
from boatyard.model.generated.osac import Metadata
from boatyard.model.generated.rest import ROUTES
from tests.api.backups import BACKUPS, finished_backup
from tests.api.doors import OURS, PRIVATE, PUBLIC, ApiEnvironment, Door, Failed
from tests.api.roles import BY_KIND
from tests.support import permissions
from tests.support.permissions import LETTERS

pytestmark = pytest.mark.asyncio(loop_scope="module")

CALLS = permissions.calls()
BOUND = {(route.service, route.rpc) for route in ROUTES}
PEOPLE = ("operator", "admin", "member", "viewer")
TENANTS = {"own": "acme", "shared": "shared", "foreign": "globex"}  # the callers are of acme
NO_ID = "0" * 36

# Services whose calls name an object of another kind than their own, and how.
NAMED = {
    f"{OURS}.Access": ("cluster", "Cluster"),
    f"{OURS}.RunLogs": ("cluster", "Cluster"),
    f"{OURS}.Hubs": ("hub", "Hub"),
    f"{OURS}.RoleRuns": ("order", "Order"),
}
OF_A_CLUSTER = ("Explain", "Follow", "Retry", "GetReceipt", "History")
STREAMS = {
    (service, rpc)
    for service, rpc in CALLS
    if wire.services()[service].methods_by_name[rpc].server_streaming
}


class Objects:
    """Objects of every kind of tenant acme, of everybody and of tenant globex, made on first use."""

    def __init__(self, environment: ApiEnvironment) -> None:
        self._environment = environment
        self._ids: dict[tuple[str, str], str] = {}

    async def id(self, kind: str, whose: str = "own") -> str:
        if (kind, whose) not in self._ids:
            self._ids[kind, whose] = await self._create(kind, TENANTS[whose])
        return self._ids[kind, whose]

    async def _create(self, kind: str, tenant: str) -> str:
        if kind == "Tenant":
            return tenant
        if kind == "Backup":
            return str((await finished_backup(self._environment, tenant))["id"])
        if kind in ("Leftover", "TemplateSource"):
            return await self._insert(
                {"Leftover": Leftover, "TemplateSource": TemplateSource}[kind]
            )
        if kind == "Order":
            return await self._create("Cluster", tenant)
        body = BY_KIND[kind].fresh()
        if kind != "Hub":
            body["metadata"]["tenant"] = tenant
        answer = await self._environment.grpc.call(
            f"{PRIVATE}.{BY_KIND[kind].service}",
            "Create",
            {"object": body},
            token=self._environment.token("operator"),
        )
        if kind == "Cluster":
            await self._finish(answer["id"], tenant)
        return str(answer["id"])

    async def _insert(self, cls: type[Any]) -> str:
        id = cls.__name__.lower()
        now = self._environment.ledger.clock.now()
        metadata = Metadata(name=id, tenant="system", creation_timestamp=now)
        await self._environment.ledger.commit([Insert(cls(id=id, metadata=metadata))], now=now)
        return id

    async def _finish(self, cluster: str, tenant: str) -> None:
        """What the worker leaves behind: an order with credentials, and a receipt."""
        now = self._environment.ledger.clock.now()
        order = Order(
            id=cluster,
            metadata=Metadata(name=f"order-{cluster}", tenant=tenant, creation_timestamp=now),
            status=OrderStatus(
                credentials=Credentials(kubeconfig="kube: config", password="secret"),
                receipt=Receipt(requested_at=now, finished_at=now),
            ),
        )
        await self._environment.ledger.commit([Insert(order)], now=now)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def objects(environment: ApiEnvironment) -> Objects:
    return Objects(environment)


def _target(service: str, rpc: str) -> tuple[str, str]:
    """Which field of the request names the object, and its kind; ("", "") where nothing is named."""
    if service in NAMED:
        return NAMED[service]
    if service == f"{OURS}.Templates":
        return (
            ("template", "ClusterTemplate") if rpc == "GetSchema" else ("role", "ClusterTemplate")
        )
    if service == f"{OURS}.Orders" and rpc in OF_A_CLUSTER:
        return "cluster", "Cluster"
    if service not in VIEWS or rpc == "List":
        return "", ""
    if service == BACKUPS and rpc == "Create":
        return "object.spec.cluster", "Cluster"
    return ("object" if rpc in ("Create", "Update") else "id"), VIEWS[service].kind.name


def _body(service: str, rpc: str, id: str, whose: str) -> dict[str, Any]:
    field, kind = _target(service, rpc)
    match field:
        case "" if service.endswith(".Events"):
            return {"after": ""}  # so that a bookmark comes first
        case "":
            return {}
        case "object.spec.cluster":
            return {"object": {"metadata": {"name": "x"}, "spec": {"cluster": id}}}
        case "object" if rpc == "Update":
            changed = {"id": id, "metadata": {"labels": {"a": "b"}}}
            return {"object": changed, "update_mask": "metadata.labels"}
        case "object":
            body = BY_KIND[kind].fresh(service.rpartition(".")[0])
            body["metadata"]["tenant"] = TENANTS[whose]
            if service.startswith(PRIVATE) and kind in ("Hub", "Tenant"):
                del body["metadata"]["tenant"]
            if service.startswith(PUBLIC):
                body.get("spec", {}).pop("image", None)
            return {"object": body}
    return {field: id}


async def _code(
    door: Door, service: str, rpc: str, body: dict[str, Any], token: str
) -> tuple[str, str]:
    """The code of the answer, and its words."""
    try:
        if (service, rpc) in STREAMS:
            assert door.name == "grpc"
            await door.open(service, rpc, body, token=token)  # type: ignore[attr-defined]
        else:
            await door.call(service, rpc, body, token=token)
    except Failed as failed:
        return failed.code, failed.message
    return "OK", ""


def _reaches(door: Door, service: str, rpc: str) -> bool:
    if door.name == "grpc":
        return True
    return (service, rpc) in BOUND and (service, rpc) not in STREAMS


async def _answer(
    environment: ApiEnvironment,
    door: Door,
    objects: Objects,
    call: tuple[str, str],
    whose: str,
    role: str,
) -> str:
    """`answered`, or the code that refuses."""
    _field, kind = _target(*call)
    roles = CALLS[call].of(whose)
    assert roles is not None
    id = await objects.id(kind, whose) if kind else ""
    if call[1] == "Delete" and LETTERS[role] in roles:
        id = NO_ID  # the object is needed by the next call; test_deleting.py deletes
    token = environment.token(role) if role != "none" else ""
    code, _words = await _code(door, *call, _body(*call, id, whose), token)
    refused = {"UNAUTHENTICATED", "PERMISSION_DENIED", "INTERNAL", "NOT_FOUND"}
    if id == NO_ID:
        refused.remove("NOT_FOUND")
    return code if code in refused else "answered"


async def test_both_doors_answer_the_roles_of_the_table(
    environment: ApiEnvironment, door: Door, objects: Objects
) -> None:
    answers, expected = {}, {}
    for call, roles in CALLS.items():
        if not _reaches(door, *call):
            continue
        for role in (*PEOPLE, "none"):
            key = f"{'/'.join(call)} by {role}"
            answers[key] = await _answer(environment, door, objects, call, "own", role)
            refusal = "UNAUTHENTICATED" if role == "none" else "PERMISSION_DENIED"
            expected[key] = "answered" if LETTERS[role] in roles.own else refusal
    assert answers == expected


async def test_shared_objects_are_seen_and_not_changed(
    environment: ApiEnvironment, door: Door, objects: Objects
) -> None:
    """Nor is anything handed out that opens them."""
    answers, expected = {}, {}
    for call, roles in CALLS.items():
        if roles.shared is None or not _reaches(door, *call):
            continue
        for role in PEOPLE:
            key = f"{'/'.join(call)} by {role}"
            answers[key] = await _answer(environment, door, objects, call, "shared", role)
            expected[key] = "answered" if LETTERS[role] in roles.shared else "PERMISSION_DENIED"
    assert answers == expected


async def test_a_strangers_object_is_answered_like_none(
    environment: ApiEnvironment, door: Door, objects: Objects
) -> None:
    """Whoever may not do it to their own either is denied before anything is looked up."""
    for call, roles in CALLS.items():
        _field, kind = _target(*call)
        if roles.foreign is None or not kind or not _reaches(door, *call):
            continue
        refusal = "PERMISSION_DENIED" if call[1] == "Create" else "NOT_FOUND"
        if call == (BACKUPS, "Create"):
            refusal = "INVALID_ARGUMENT"  # it refers to a cluster that is not found
        for role in PEOPLE:
            if LETTERS[role] in roles.foreign:
                continue
            answers = []
            for id in (await objects.id(kind, "foreign"), NO_ID):
                body = _body(*call, id, "foreign")
                code, words = await _code(door, *call, body, environment.token(role))
                answers.append((code, words.replace(id, "ID")))
            assert answers[0] == answers[1], f"{call} by {role}"
            allowed = LETTERS[role] in roles.own
            assert answers[0][0] == (refusal if allowed else "PERMISSION_DENIED"), (
                f"{call} by {role}"
            )


LISTS = [call for call, roles in CALLS.items() if call[1] == "List" and roles.foreign is not None]


async def _listed(
    environment: ApiEnvironment, door: Door, service: str, role: str, text: str = ""
) -> tuple[set[str], set[str]]:
    """The ids and the tenants of what a role is shown."""
    body: dict[str, Any] = {"limit": 1000} | ({"filter": text} if text else {})
    page = await door.call(service, "List", body, token=environment.token(role))
    items = page.get("items", [])
    assert page.get("total", 0) == len(items)
    return {item["id"] for item in items}, {item["metadata"]["tenant"] for item in items}


@pytest.mark.parametrize("service", [service for service, _rpc in LISTS])
async def test_lists_show_own_and_shared_only(
    environment: ApiEnvironment, door: Door, objects: Objects, service: str
) -> None:
    kind, roles = VIEWS[service].kind.name, CALLS[service, "List"]
    ids = {whose: await objects.id(kind, whose) for whose in TENANTS if roles.of(whose)}
    for role in PEOPLE:
        shown, tenants = await _listed(environment, door, service, role)
        expected = {whose for whose in ids if LETTERS[role] in (roles.of(whose) or "")}
        assert {whose for whose, id in ids.items() if id in shown} == expected, role
        assert role == "operator" or tenants <= {"acme", "shared"}, role


@pytest.mark.parametrize("service", [service for service, _rpc in LISTS])
async def test_no_filter_leads_to_what_is_a_strangers(
    environment: ApiEnvironment, objects: Objects, service: str
) -> None:
    """Through one door: both hand the filter on as it is."""
    theirs = await objects.id(VIEWS[service].kind.name, "foreign")
    for text in (
        f'this.id == "{theirs}"',
        'this.metadata.tenant == "globex"',
        'this.metadata.tenant == "acme" || this.metadata.tenant != "acme"',
        f'!(this.id == "nothing") || this.id == "{theirs}"',
    ):
        shown, tenants = await _listed(environment, environment.grpc, service, "member", text)
        assert theirs not in shown, text
        assert tenants <= {"acme", "shared"}, text


async def test_every_list_that_tenants_read_is_looked_at() -> None:
    public_kinds = {f"{PUBLIC}.{kind.service}" for kind in WRITABLE_KINDS if kind.public}
    assert {service for service, _rpc in LISTS} == {BACKUPS, *public_kinds}


async def test_a_tenant_cannot_create_for_another(environment: ApiEnvironment, door: Door) -> None:
    """The answer does not depend on whether that other exists."""
    answers = []
    for tenant in ("globex", "nobody", "shared", "system"):
        body = {"metadata": {"name": "x", "tenant": tenant}, "spec": {"template": {"name": "ocp"}}}
        with pytest.raises(Failed) as failed:
            await door.call(
                f"{PUBLIC}.Clusters", "Create", {"object": body}, token=environment.token("member")
            )
        answers.append((failed.value.code, failed.value.message.replace(tenant, "T")))
    assert set(answers) == {("PERMISSION_DENIED", "the tenant 'T' cannot be assigned")}


async def test_an_id_is_not_an_oracle(
    environment: ApiEnvironment, door: Door, objects: Objects
) -> None:
    theirs = await objects.id("Cluster")
    for id in (theirs, "free-to-take"):
        body = {"id": id, "metadata": {"name": "x"}, "spec": {"template": {"name": "ocp"}}}
        with pytest.raises(Failed) as failed:
            await door.call(
                f"{PUBLIC}.Clusters",
                "Create",
                {"object": body},
                token=environment.token("member", "globex"),
            )
        assert failed.value.code == "INVALID_ARGUMENT"
        assert failed.value.violations == {"id": "is chosen by the service; leave it out"}


async def test_names_of_strangers_are_free(environment: ApiEnvironment, door: Door) -> None:
    for tenant in ("acme", "globex"):
        body = {"metadata": {"name": f"same-{door.name}"}, "spec": {"template": {"name": "ocp"}}}
        await door.call(
            f"{PUBLIC}.Clusters",
            "Create",
            {"object": body},
            token=environment.token("member", tenant),
        )


async def test_a_reference_to_a_stranger_is_not_found(
    environment: ApiEnvironment, door: Door
) -> None:
    """Also for an operator who acts for a tenant."""
    operator = environment.token("operator")
    secret = {"metadata": {"name": f"private-{door.name}", "tenant": "globex"}, "title": "x"}
    made = await environment.grpc.call(
        f"{PRIVATE}.ClusterTemplates", "Create", {"object": secret}, token=operator
    )
    for key in ({"id": made["id"]}, {"name": f"private-{door.name}"}):
        for token, tenant in ((environment.token("member"), ""), (operator, "acme")):
            body = {"metadata": {"name": "x", "tenant": tenant}, "spec": {"template": key}}
            with pytest.raises(Failed) as failed:
                await door.call(f"{PUBLIC}.Clusters", "Create", {"object": body}, token=token)
            assert failed.value.code == "INVALID_ARGUMENT"
            assert "not found" in failed.value.violations["spec.template"]


async def test_credentials_are_for_those_who_may_change_the_cluster(
    environment: ApiEnvironment, door: Door, objects: Objects
) -> None:
    id = await objects.id("Cluster")
    service = f"{PUBLIC}.Clusters"
    for role in ("member", "admin", "operator"):
        token = environment.token(role)
        assert await door.call(service, "GetKubeconfigViaHttp", {"id": id}, token=token) == (
            "kube: config"
        )
        assert await door.call(service, "GetPasswordViaHttp", {"id": id}, token=token) == "secret"
    member = environment.token("member")
    shown = await environment.grpc.call(service, "GetKubeconfig", {"id": id}, token=member)
    assert shown == {"kubeconfig": "kube: config"}
    shown = await environment.grpc.call(service, "GetPassword", {"id": id}, token=member)
    assert shown == {"password": "secret"}
    for rpc in ("GetKubeconfigViaHttp", "GetPasswordViaHttp"):
        with pytest.raises(Failed) as failed:
            await door.call(service, rpc, {"id": id}, token=environment.token("viewer"))
        assert failed.value.code == "PERMISSION_DENIED"
    shown = await door.call(
        f"{OURS}.Orders", "Get", {"id": id}, token=environment.token("operator")
    )
    assert shown["status"]["credentials"] == {"kubeconfig": "***", "password": "***"}
