"""What a certificate that Access issues allows in the cluster: it follows the caller's role."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from boatyard.api.access import AccessService
from boatyard.api.crud import Call, Crud
from boatyard.kube.client import KubeClient
from boatyard.ledger.changes import Change, Signal
from boatyard.model import wire
from boatyard.model.caller import SHARED, Caller, CallerRole
from boatyard.model.errors import Denied
from boatyard.model.generated.boatyard import Credentials, Order, OrderStatus
from boatyard.model.generated.osac import Cluster, Metadata
from tests.support.kubeconfigs import kubeconfig
from tests.support.signing_cluster import NOW, SigningCluster


class MemoryLedger:
    """A ledger in memory with one cluster and its order."""

    def __init__(self, tenant: str) -> None:
        metadata = Metadata(name="web", tenant=tenant)
        credentials = Credentials(kubeconfig=kubeconfig().decode())
        self._documents: dict[type[Any], Any] = {
            Cluster: Cluster(id="c1", metadata=metadata),
            Order: Order(id="c1", metadata=metadata, status=OrderStatus(credentials=credentials)),
        }
        self.clock = SimpleNamespace(now=lambda: NOW)
        self.notes: list[str] = []

    @property
    def documents(self) -> MemoryLedger:
        return self

    async def get(self, cls: type[Any], id: str, *, sealed: bool = False) -> Any:
        return self._documents[cls] if id == "c1" else None

    async def commit(self, changes: Sequence[Change], *, now: Any) -> None:
        self.notes += [
            f"{change.note.reason}: {change.note.message}"
            for change in changes
            if isinstance(change, Signal)
        ]


async def issue(
    caller: Caller, cluster: SigningCluster, ledger: MemoryLedger, user: str = ""
) -> Any:
    crud = cast(Crud, SimpleNamespace(ledger=ledger))
    access = AccessService(crud, connect=lambda _config: cast(KubeClient, cluster))
    request = wire.message("boatyard.v1.AccessIssueRequest")(cluster="c1", user=user)
    return await access.issue(request, Call(caller))


@pytest.mark.parametrize("role, group, cluster_role, issued_by", [
    (CallerRole.OPERATOR, "boatyard:admins", "cluster-admin", "boatyard:issued-by-operator"),
    (CallerRole.ADMIN, "boatyard:admins", "cluster-admin", "boatyard:issued-by:ann"),
    (CallerRole.MEMBER, "boatyard:admins", "cluster-admin", "boatyard:issued-by:ann"),
    (CallerRole.VIEWER, "boatyard:viewers", "view", "boatyard:issued-by:ann"),
])  # fmt: skip
async def test_a_viewer_is_issued_view_and_those_who_may_change_the_cluster_cluster_admin(
    role: CallerRole, group: str, cluster_role: str, issued_by: str
) -> None:
    cluster, ledger = SigningCluster(), MemoryLedger("acme")
    tenant = SHARED if role is CallerRole.OPERATOR else "acme"

    answer = await issue(Caller("ann", tenant, role), cluster, ledger)

    (sent,) = cluster.sent
    subject = x509.load_pem_x509_csr(base64.b64decode(sent["spec"]["request"])).subject
    organizations = subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    assert [attribute.value for attribute in organizations] == [group, issued_by]
    assert list(answer.groups) == [group, issued_by]
    (binding,) = cluster.applied.values()
    assert binding["roleRef"]["name"] == cluster_role
    assert [subject["name"] for subject in binding["subjects"]] == [group]


async def test_an_operators_name_is_not_in_the_record_of_the_access() -> None:
    cluster, ledger = SigningCluster(), MemoryLedger("acme")

    await issue(Caller("olga", SHARED, CallerRole.OPERATOR), cluster, ledger, user="bob")

    assert [event.split(":")[0] for event in ledger.notes] == [
        "AccessRequested",
        "AccessIssued",
    ]
    assert all(event.endswith("by an operator") for event in ledger.notes)


@pytest.mark.parametrize("role", [CallerRole.ADMIN, CallerRole.MEMBER, CallerRole.VIEWER])
async def test_access_to_a_shared_cluster_is_for_operators(role: CallerRole) -> None:
    cluster, ledger = SigningCluster(), MemoryLedger(SHARED)

    with pytest.raises(Denied):
        await issue(Caller("ann", "acme", role), cluster, ledger)

    assert (cluster.sent, cluster.applied, ledger.notes) == ([], {}, [])
    await issue(Caller("olga", SHARED, CallerRole.OPERATOR), cluster, ledger)
    assert len(cluster.sent) == 1
