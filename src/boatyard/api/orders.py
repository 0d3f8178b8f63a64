"""Explanation, retry, receipt and history of a cluster's order, and its credentials. Called by both servers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping

from google.api import httpbody_pb2
from google.protobuf.message import Message
from msgspec.structs import replace

from boatyard.api import document_changes, policy
from boatyard.api.answers import Answers, OnStart, Part
from boatyard.api.crud import Call, Crud, can_see, check_id, make_not_found
from boatyard.api.kinds import BOATYARD_V1, KINDS, OSAC_PUBLIC
from boatyard.api.permissions import Verb
from boatyard.api.requests import HistoryRequest, IdRequest, OrderRequest
from boatyard.api.watch import EventWatchers
from boatyard.ledger.changes import Change, Due, Replace
from boatyard.ledger.ledger import Ledger
from boatyard.model import wire
from boatyard.model.caller import SHARED, Caller
from boatyard.model.errors import Conflict, NotFound, Refused, Violation
from boatyard.model.generated import convert
from boatyard.model.generated.boatyard import Credentials, Explanation, Order, Receipt
from boatyard.model.generated.osac import Cluster
from boatyard.resources.metadata import quote_text
from boatyard.resources.orders import rules
from boatyard.resources.orders.explain import explain, redact_receipt
from boatyard.resources.orders.remote_orders import NoRemoteOrders, RemoteOrders, request_retry

DEFAULT_HISTORY_ENTRIES = 100
MOST_HISTORY_ENTRIES = 1000
FOLLOW_SECONDS = 30.0

_CLUSTER_KIND = KINDS["Cluster"]


def _message_type(name: str) -> Callable[..., Message]:
    return wire.message(f"{BOATYARD_V1}.{name}")


def _clusters(rpc: str) -> Callable[..., Message]:
    return wire.message(f"{OSAC_PUBLIC}.Clusters{rpc}Response")


class OrdersService:
    """Implements `boatyard.v1.Orders` except List and Get, and the two methods that return credentials."""

    def __init__(
        self, crud: Crud, watches: EventWatchers, remote_orders: RemoteOrders | None = None
    ) -> None:
        self._remote_orders = remote_orders or NoRemoteOrders()
        self._crud = crud
        self._ledger = crud.ledger
        self._watches = watches

    def answers(self) -> Mapping[str, Answers]:
        return {
            f"{BOATYARD_V1}.Orders": Answers(
                unary={
                    "Explain": self.explain,
                    "Retry": self.retry,
                    "GetReceipt": self.receipt,
                    "History": self.history,
                },
                streams={"Follow": self.follow},
            ),
            f"{OSAC_PUBLIC}.Clusters": Answers(
                unary={
                    "GetKubeconfig": self._get_kubeconfig,
                    "GetKubeconfigViaHttp": self._get_kubeconfig_via_http,
                    "GetPassword": self._get_password,
                    "GetPasswordViaHttp": self._get_password_via_http,
                }
            ),
        }

    async def explain(self, request: OrderRequest, call: Call) -> Message:
        policy.check(call.caller, Verb.EXPLAIN, "Cluster", private=False)
        cluster, deleted = await self.find_live_or_deleted(request.cluster, call.caller)
        explanation = await self.make_explanation(cluster, call.caller, deleted=deleted)
        return _message_type("OrdersExplainResponse")(explanation=_to_message(explanation))

    async def follow(
        self, request: OrderRequest, call: Call, on_start: OnStart
    ) -> AsyncIterator[Part]:
        """Streams the explanation now and after each change, and ends once it says that the cluster is gone."""
        policy.check(call.caller, Verb.EXPLAIN, "Cluster", private=False)
        watcher = await self._watches.add_watcher(None, None)
        try:
            cluster, deleted = await self.find_live_or_deleted(request.cluster, call.caller)
            await on_start("")
            last_explanation = None
            while True:
                explanation = await self.make_explanation(cluster, call.caller, deleted=deleted)
                if explanation != last_explanation:
                    response = _message_type("OrdersFollowResponse")(
                        explanation=_to_message(explanation)
                    )
                    yield Part(response.SerializeToString())
                    last_explanation = explanation
                if deleted:
                    return
                while not any(
                    entry.row.id == cluster.id and entry.row.kind in ("Cluster", "Order")
                    for entry in await watcher.next_entries(FOLLOW_SECONDS)
                ):
                    pass
                cluster, deleted = await self.reload_cluster(cluster)
        finally:
            self._watches.remove_watcher(watcher)

    async def retry(self, request: OrderRequest, call: Call) -> Message:
        """Makes the order's reconciler retry now the steps that failed, wait or are quarantined."""
        policy.check(call.caller, Verb.RETRY, "Cluster", private=False)
        cluster = await find_cluster(self._ledger, request.cluster, call.caller)
        policy.check_owner(call.caller, Verb.RETRY, cluster.metadata.tenant)
        for is_last_try in document_changes.iterate_tries():
            now = self._ledger.clock.now()
            tenant = cluster.metadata.tenant
            changes: list[Change] = [Due("Cluster", cluster.id, now, tenant=tenant)]
            order = await self._ledger.documents.get(Order, cluster.id)
            note = document_changes.make_note("Retried", call.caller, "Retry requested")
            if order is not None and await self._remote_orders.stores_orders(order.spec.hub):
                changes.append(Replace(request_retry(order), note))
            elif order is not None:
                changes.append(Replace(rules.retry(order, now), note))
                changes.append(Due("Order", order.id, now, tenant=tenant))
            try:
                await self._ledger.commit(changes, now=now)
            except Conflict:
                if is_last_try:
                    raise
                continue
            break
        return _message_type("OrdersRetryResponse")()

    async def receipt(self, request: OrderRequest, call: Call) -> Message:
        policy.check(call.caller, Verb.HISTORY, "Cluster", private=False)
        cluster, _deleted = await self.find_live_or_deleted(request.cluster, call.caller)
        order = await self._find_order(cluster.id)
        if order is None or order.status.receipt == Receipt():
            raise NotFound(
                f"there is no receipt for the cluster {quote_text(cluster.metadata.name)} yet"
            )
        visible_receipt = redact_receipt(order.status.receipt, operator=call.caller.is_operator)
        receipt = convert.TO_MESSAGE[f"{BOATYARD_V1}.Receipt"](visible_receipt)
        return _message_type("OrdersGetReceiptResponse")(receipt=receipt)

    async def history(self, request: HistoryRequest, call: Call) -> Message:
        """Returns the cluster's events, oldest first; for operators also those of its order."""
        policy.check(call.caller, Verb.HISTORY, "Cluster", private=False)
        limit = request.limit if request.HasField("limit") else DEFAULT_HISTORY_ENTRIES
        if limit < 0:
            raise Refused("", Violation("limit", f"{limit} is negative", "give 0 or more"))
        cluster, _deleted = await self.find_live_or_deleted(request.cluster, call.caller)
        subjects = [("Cluster", cluster.id)]
        if call.caller.is_operator:
            subjects.append(("Order", cluster.id))
        rows = (
            await self._ledger.events.list_history(subjects, min(limit, MOST_HISTORY_ENTRIES))
            if limit
            else []
        )
        items = [
            {"at": wire.timestamp_fields(row.at), "reason": row.reason, "message": row.message}
            for row in rows
            if row.message
        ]
        return _message_type("OrdersHistoryResponse")(items=items)

    async def kubeconfig(self, request: IdRequest, call: Call) -> str:
        return (await self._read_credentials(request.id, call.caller)).kubeconfig

    async def password(self, request: IdRequest, call: Call) -> str:
        """Returns the password. NotFound while there is none yet, or when the platform has none; the texts differ."""
        password = (await self._read_credentials(request.id, call.caller)).password
        if not password:
            raise NotFound("clusters of this platform have no password; use the kubeconfig")
        return password

    async def _get_kubeconfig(self, request: IdRequest, call: Call) -> Message:
        kubeconfig = await self.kubeconfig(request, call)
        return _clusters("GetKubeconfig")(kubeconfig=kubeconfig)

    async def _get_kubeconfig_via_http(self, request: IdRequest, call: Call) -> Message:
        return make_http_body(await self.kubeconfig(request, call), "application/yaml")

    async def _get_password(self, request: IdRequest, call: Call) -> Message:
        return _clusters("GetPassword")(password=await self.password(request, call))

    async def _get_password_via_http(self, request: IdRequest, call: Call) -> Message:
        return make_http_body(await self.password(request, call), "text/plain")

    async def _read_credentials(self, id: str, caller: Caller) -> Credentials:
        policy.check(caller, Verb.CREDENTIALS, "Cluster", private=False)
        cluster = await self._crud.find(_CLUSTER_KIND, id, caller, sealed=True)
        assert isinstance(cluster, Cluster)
        policy.check_owner(caller, Verb.CREDENTIALS, cluster.metadata.tenant)
        return await read_credentials(self._ledger, cluster, self._remote_orders)

    async def find_live_or_deleted(self, key: str, caller: Caller) -> tuple[Cluster, bool]:
        """Finds a cluster by id or name, also a deleted one; the flag says whether it is deleted."""
        try:
            return await find_cluster(self._ledger, key, caller), False
        except NotFound:
            cluster = await self._ledger.documents.get_archived(Cluster, key, sealed=True)
            if cluster is None or not can_see(caller, cluster):
                cluster = await self._ledger.documents.find_archived(
                    Cluster, key, caller.visible_tenants, sealed=True
                )
            if cluster is None:
                raise
            return cluster, True

    async def reload_cluster(self, cluster: Cluster) -> tuple[Cluster, bool]:
        current = await self._ledger.documents.get(Cluster, cluster.id, sealed=True)
        if current is not None:
            return current, False
        return await self._ledger.documents.get_archived(
            Cluster, cluster.id, sealed=True
        ) or cluster, True

    async def _find_order(self, id: str) -> Order | None:
        order = await self._ledger.documents.get(Order, id, sealed=True)
        return order or await self._ledger.documents.get_archived(Order, id, sealed=True)

    async def make_explanation(
        self, cluster: Cluster, caller: Caller, *, deleted: bool
    ) -> Explanation:
        order = await self._find_order(cluster.id)
        explanation = explain(
            cluster, order, now=self._ledger.clock.now(), operator=caller.is_operator
        )
        return replace(explanation, gone=True) if deleted else explanation


async def read_credentials(
    ledger: Ledger, cluster: Cluster, remote_orders: RemoteOrders
) -> Credentials:
    """Returns the cluster's credentials from the ledger or from its hub. NotFound while there are none."""
    order = await ledger.documents.get(Order, cluster.id)
    if order is None:
        raise make_no_credentials_error(cluster)
    credentials = await remote_orders.read_credentials(order) or order.status.credentials
    if not credentials.kubeconfig:
        raise make_no_credentials_error(cluster)
    return credentials


async def find_cluster(ledger: Ledger, key: str, caller: Caller) -> Cluster:
    """Returns the cluster with that id or name; the caller's own comes before a shared one."""
    check_id(key)
    cluster = await ledger.documents.get(Cluster, key, sealed=True)
    if cluster is not None and can_see(caller, cluster):
        return cluster
    candidates = await ledger.documents.find(
        Cluster, name=key, tenants=caller.visible_tenants, sealed=True
    )
    own_clusters = [
        cluster for cluster in candidates if cluster.metadata.tenant != SHARED
    ] or candidates
    if len(own_clusters) > 1:
        raise Refused("", Violation("cluster", f"{quote_text(key)} is ambiguous", "give the id"))
    if not own_clusters:
        raise make_not_found(_CLUSTER_KIND, key)
    return own_clusters[0]


def make_no_credentials_error(cluster: Cluster) -> NotFound:
    """The error for a cluster without credentials yet: they come with the cluster's API, before its nodes."""
    return NotFound(
        f"the cluster {quote_text(cluster.metadata.name)} has no credentials yet: it is"
        f" {cluster.status.state.name}; wait until its API answers"
    )


def make_http_body(text: str, content_type: str) -> Message:
    return httpbody_pb2.HttpBody(content_type=content_type, data=text.encode())


def _to_message(explanation: Explanation) -> Message:
    return convert.TO_MESSAGE[f"{BOATYARD_V1}.Explanation"](explanation)
