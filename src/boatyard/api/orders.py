"""Explanation, retry, receipt and history of a cluster's order, and its credentials. Called by both servers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from google.api import httpbody_pb2
from google.protobuf.message import Message
from msgspec.structs import replace

from boatyard.api import policy, writing
from boatyard.api.crud import Call, Crud, check_id, missing, sees
from boatyard.api.kinds import KINDS, OURS
from boatyard.api.policy import Verb
from boatyard.api.watch import Part, Watches
from boatyard.ledger.changes import Change, Due, Replace
from boatyard.ledger.ledger import Ledger
from boatyard.model import wire
from boatyard.model.caller import SHARED, Caller
from boatyard.model.errors import Conflict, NotFound, Refused, Violation
from boatyard.model.generated import convert
from boatyard.model.generated.boatyard import Credentials, Explanation, Order, Receipt
from boatyard.model.generated.osac import Cluster
from boatyard.resources.metadata import shown
from boatyard.resources.orders import rules
from boatyard.resources.orders.elsewhere import Elsewhere, Nowhere, ask_for_retry
from boatyard.resources.orders.explain import explain, shown_receipt

DEFAULT_HAPPENINGS = 100
MOST_HAPPENINGS = 1000
FOLLOW_SECONDS = 30.0

_CLUSTER = KINDS["Cluster"]


def _ours(name: str) -> Callable[..., Message]:
    return wire.message(f"{OURS}.{name}")


class Orders:
    """Implements `boatyard.v1.Orders` except List and Get, and the two methods that return credentials."""

    def __init__(self, crud: Crud, watches: Watches, elsewhere: Elsewhere | None = None) -> None:
        self._elsewhere = elsewhere or Nowhere()
        self._crud = crud
        self._ledger = crud.ledger
        self._watches = watches

    async def explain(self, request: Any, call: Call) -> Message:
        policy.check(call.caller, Verb.EXPLAIN, "Cluster", private=False)
        cluster, deleted = await self.find_ever(request.cluster, call.caller)
        explanation = await self.explanation(cluster, call.caller, deleted=deleted)
        return _ours("OrdersExplainResponse")(explanation=_message(explanation))

    async def follow(
        self, request: Any, call: Call, on_start: Callable[[str], Awaitable[None]]
    ) -> AsyncIterator[Part]:
        """Streams the explanation now and after each change, and ends once it says that the cluster is gone."""
        policy.check(call.caller, Verb.EXPLAIN, "Cluster", private=False)
        watcher = await self._watches.follow(None, None)
        try:
            cluster, deleted = await self.find_ever(request.cluster, call.caller)
            await on_start("")
            last_explanation = None
            while True:
                explanation = await self.explanation(cluster, call.caller, deleted=deleted)
                if explanation != last_explanation:
                    response = _ours("OrdersFollowResponse")(explanation=_message(explanation))
                    yield Part(response.SerializeToString())
                    last_explanation = explanation
                if deleted:
                    return
                while not any(
                    entry.row.id == cluster.id and entry.row.kind in ("Cluster", "Order")
                    for entry in await watcher.entries(FOLLOW_SECONDS)
                ):
                    pass
                cluster, deleted = await self.again(cluster)
        finally:
            self._watches.leave(watcher)

    async def retry(self, request: Any, call: Call) -> Message:
        """Makes the order's reconciler retry now the steps that failed, wait or are quarantined."""
        policy.check(call.caller, Verb.RETRY, "Cluster", private=False)
        cluster = await find_cluster(self._ledger, request.cluster, call.caller)
        policy.check_owner(call.caller, Verb.RETRY, cluster.metadata.tenant)
        for is_last_try in writing.tries():
            now = self._ledger.clock.now()
            tenant = cluster.metadata.tenant
            changes: list[Change] = [Due("Cluster", cluster.id, now, tenant=tenant)]
            order = await self._ledger.documents.get(Order, cluster.id)
            note = writing.note("Retried", call.caller, "Retry requested")
            if order is not None and await self._elsewhere.keeps(order.spec.hub):
                changes.append(Replace(ask_for_retry(order), note))
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
        return _ours("OrdersRetryResponse")()

    async def receipt(self, request: Any, call: Call) -> Message:
        policy.check(call.caller, Verb.HISTORY, "Cluster", private=False)
        cluster, _deleted = await self.find_ever(request.cluster, call.caller)
        order = await self._order(cluster.id)
        if order is None or order.status.receipt == Receipt():
            raise NotFound(
                f"there is no receipt for the cluster {shown(cluster.metadata.name)} yet"
            )
        visible_receipt = shown_receipt(order.status.receipt, operator=call.caller.is_operator)
        receipt = convert.TO_MESSAGE[f"{OURS}.Receipt"](visible_receipt)
        return _ours("OrdersGetReceiptResponse")(receipt=receipt)

    async def history(self, request: Any, call: Call) -> Message:
        """Returns the cluster's events, oldest first; for operators also those of its order."""
        policy.check(call.caller, Verb.HISTORY, "Cluster", private=False)
        limit = request.limit if request.HasField("limit") else DEFAULT_HAPPENINGS
        if limit < 0:
            raise Refused("", Violation("limit", f"{limit} is negative", "give 0 or more"))
        cluster, _deleted = await self.find_ever(request.cluster, call.caller)
        subjects = [("Cluster", cluster.id)]
        if call.caller.is_operator:
            subjects.append(("Order", cluster.id))
        rows = (
            await self._ledger.events.happenings(subjects, min(limit, MOST_HAPPENINGS))
            if limit
            else []
        )
        items = [
            {"at": wire.timestamp_fields(row.at), "reason": row.reason, "message": row.message}
            for row in rows
            if row.message
        ]
        return _ours("OrdersHistoryResponse")(items=items)

    async def kubeconfig(self, request: Any, call: Call) -> str:
        return (await self._credentials(request.id, call.caller)).kubeconfig

    async def password(self, request: Any, call: Call) -> str:
        """Returns the password. NotFound while there is none yet, or when the platform has none; the texts differ."""
        password = (await self._credentials(request.id, call.caller)).password
        if not password:
            raise NotFound("clusters of this platform have no password; use the kubeconfig")
        return password

    async def _credentials(self, id: str, caller: Caller) -> Credentials:
        policy.check(caller, Verb.CREDENTIALS, "Cluster", private=False)
        cluster = await self._crud.find(_CLUSTER, id, caller, sealed=True)
        policy.check_owner(caller, Verb.CREDENTIALS, cluster.metadata.tenant)
        return await credentials_of(self._ledger, cluster, self._elsewhere)

    async def find_ever(self, key: str, caller: Caller) -> tuple[Cluster, bool]:
        """Finds a cluster by id or name, also a deleted one; the flag says whether it is deleted."""
        try:
            return await find_cluster(self._ledger, key, caller), False
        except NotFound:
            cluster = await self._ledger.documents.archived(Cluster, key, sealed=True)
            if cluster is None or not sees(caller, cluster):
                cluster = await self._ledger.documents.archived_find(
                    Cluster, key, caller.visible_tenants, sealed=True
                )
            if cluster is None:
                raise
            return cluster, True

    async def again(self, cluster: Cluster) -> tuple[Cluster, bool]:
        current = await self._ledger.documents.get(Cluster, cluster.id, sealed=True)
        if current is not None:
            return current, False
        return await self._ledger.documents.archived(
            Cluster, cluster.id, sealed=True
        ) or cluster, True

    async def _order(self, id: str) -> Order | None:
        order = await self._ledger.documents.get(Order, id, sealed=True)
        return order or await self._ledger.documents.archived(Order, id, sealed=True)

    async def explanation(self, cluster: Cluster, caller: Caller, *, deleted: bool) -> Explanation:
        order = await self._order(cluster.id)
        explanation = explain(
            cluster, order, now=self._ledger.clock.now(), operator=caller.is_operator
        )
        return replace(explanation, gone=True) if deleted else explanation


async def credentials_of(ledger: Ledger, cluster: Cluster, elsewhere: Elsewhere) -> Credentials:
    """Returns the cluster's credentials from the ledger or from its hub. NotFound while there are none."""
    order = await ledger.documents.get(Order, cluster.id)
    if order is None:
        raise not_yet(cluster)
    credentials = await elsewhere.credentials(order) or order.status.credentials
    if not credentials.kubeconfig:
        raise not_yet(cluster)
    return credentials


async def find_cluster(ledger: Ledger, key: str, caller: Caller) -> Cluster:
    """Returns the cluster with that id or name; the caller's own comes before a shared one."""
    check_id(key)
    cluster = await ledger.documents.get(Cluster, key, sealed=True)
    if cluster is not None and sees(caller, cluster):
        return cluster
    candidates = await ledger.documents.find(
        Cluster, name=key, tenants=caller.visible_tenants, sealed=True
    )
    own_clusters = [
        cluster for cluster in candidates if cluster.metadata.tenant != SHARED
    ] or candidates
    if len(own_clusters) > 1:
        raise Refused("", Violation("cluster", f"{shown(key)} is ambiguous", "give the id"))
    if not own_clusters:
        raise missing(_CLUSTER, key)
    return own_clusters[0]


def not_yet(cluster: Cluster) -> NotFound:
    """The error for a cluster without credentials yet: they come with the cluster's API, before its nodes."""
    return NotFound(
        f"the cluster {shown(cluster.metadata.name)} has no credentials yet: it is"
        f" {cluster.status.state.name}; wait until its API answers"
    )


def http_body(text: str, content_type: str) -> Message:
    return httpbody_pb2.HttpBody(content_type=content_type, data=text.encode())


def _message(explanation: Explanation) -> Message:
    return convert.TO_MESSAGE[f"{OURS}.Explanation"](explanation)
