"""The order book of a Kubernetes hub. Opened for one reconcile pass, by the service or by the hub's operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from enum import Enum
from typing import Any, Protocol

from boatyard.model import hub_names
from boatyard.model.errors import Conflict, Exists, NotFound, Precondition
from boatyard.model.generated.boatyard import (
    NO_CLUSTER_ORDER_SECRET_REFERENCE,
    ClusterOrderSecretReference,
    Leftover,
    Order,
    OrderPhase,
    OrderSpec,
)
from boatyard.orderbook.kube.connection import HubConnection
from boatyard.orderbook.kube.mapping import from_kube, kube_json, leftovers, to_kube
from boatyard.orderbook.kube.objects import has_finalizer
from boatyard.orderbook.port import RETRY_ANNOTATION

ObjectMapping = Mapping[str, Any]


class SecretScope(Enum):
    """Which secrets the orders of an opened book contain."""

    ALL = "all"
    NEEDED = "needed"  # an order's inputs while its cluster is being made; credentials masked
    NONE = "none"


class OrderObjectView(Protocol):
    """A copy of the hub's objects that a watch keeps up to date."""

    def get_order_object(self, order_id: str) -> ObjectMapping | None: ...
    def get_leftover_object(self, leftover_id: str) -> ObjectMapping | None: ...


def skip_lease_check() -> None:
    """The lease check of a book that is opened under no lease: never raises."""


class KubeOrderBook:
    """Reads and writes orders on one hub. `check` is called before writes and raises LeaseLost once another may work.

    With a `view`, orders are read from it and not from the API server; later writes are guarded by the version read.
    """

    def __init__(
        self,
        hub: HubConnection,
        *,
        check: Callable[[], None] = skip_lease_check,
        secrets: SecretScope = SecretScope.ALL,
        view: OrderObjectView | None = None,
    ) -> None:
        self._hub = hub
        self._check_lease = check
        self._secret_scope = secrets
        self._view = view

    async def get(self, order_id: str) -> Order | None:
        if self._view is not None:
            return await self._to_order(self._view.get_order_object(order_id), self._secret_scope)
        async with self._hub.limit_call(f"reading order {order_id}"):
            return await self._to_order(await self._find_object(order_id), self._secret_scope)

    async def put(self, order_id: str, *, tenant: str, spec: OrderSpec, now: datetime) -> None:
        self._check_lease()
        async with self._hub.limit_call(f"placing order {order_id}"):
            item = await self._find_object(order_id)
            if item is None:
                await self._create(order_id, tenant, spec, now)
                return
            order = await self._to_order(item, SecretScope.ALL)
            if order is None or order.metadata.deletion_timestamp is not None or order.spec == spec:
                return
            reference = await self._write_inputs(item["metadata"]["namespace"], order_id, spec)
            ordered_at = order.metadata.creation_timestamp
            self._check_lease()
            await self._hub.objects.replace_spec(
                item,
                to_kube.to_spec(
                    order_id,
                    spec,
                    tenant=order.metadata.tenant,
                    order_settings=self._hub.order_settings,
                    ordered_at=ordered_at,
                    secret_ref=reference,
                ),
            )

    async def request_delete(self, order_id: str, *, delete_by: datetime, now: datetime) -> None:
        self._check_lease()
        async with self._hub.limit_call(f"deleting order {order_id}"):
            item = await self._find_object(order_id)
            if item is None or item["metadata"].get("deletionTimestamp"):
                return
            deletion = {
                "deletedAt": kube_json.format_time(now),
                "deleteBy": kube_json.format_time(delete_by),
            }
            item = await self._hub.objects.patch_order(
                item, spec={"boatyard": deletion}, guarded=False
            )
            await self._hub.objects.delete_order(item)

    async def forget(self, order_id: str, *, tenant: str = "", now: datetime) -> None:
        """Removes the service's finalizer. If the operator's is still there, the object stays until that goes too."""
        self._check_lease()
        async with self._hub.limit_call(f"forgetting order {order_id}"):
            for is_last in (False, False, True):
                try:
                    await self._forget_once(order_id, tenant)
                    return
                except Conflict:  # the operator removes its finalizer at the same moment
                    if is_last:
                        raise

    async def _forget_once(self, order_id: str, tenant: str) -> None:
        item = await self._find_object(order_id)
        order = await self._to_order(item, SecretScope.NONE)
        if item is None or order is None:
            await self._delete_inputs(order_id, tenant)
            return
        if order.status.phase != OrderPhase.DELETED:
            raise Precondition(f"order {order_id} has not ended yet")
        objects, metadata = self._hub.objects, item["metadata"]
        await objects.delete_secret(
            metadata["namespace"], hub_names.inputs_secret_name(metadata["name"])
        )
        await objects.set_finalizers(item, remove=hub_names.FEEDBACK_FINALIZER)
        self._hub.order_locations.pop(order_id, None)

    async def claim(
        self, pool: str, candidates: Sequence[str], owner: str, *, now: datetime
    ) -> str | None:
        self._check_lease()
        async with self._hub.limit_call(f"claiming of {pool}"):
            claimed_item = await self._hub.claims.claim(pool, candidates, owner, now=now)
        self._check_lease()  # a claim made too late is not used: another may have listed claims before it existed
        return claimed_item

    async def unclaim(self, owner: str, *, now: datetime) -> None:
        self._check_lease()
        async with self._hub.limit_call(f"giving back what {owner} holds"):
            await self._hub.claims.release(owner)

    async def get_leftover(self, leftover_id: str) -> Leftover | None:
        place = self._hub.order_settings
        if self._view is not None:
            item = self._view.get_leftover_object(leftover_id)
        else:
            async with self._hub.limit_call(f"reading leftover {leftover_id}"):
                item = await self._hub.objects.find_leftover(leftover_id)
                if item is None:
                    await self._hub.check_cluster()
        return leftovers.to_leftover(item, place) if item is not None else None

    async def request_retry(self, order_id: str, count: int) -> None:
        """Writes the total number of requested retries on the order, for the operator. No such order: does nothing."""
        self._check_lease()
        async with self._hub.limit_call(f"retrying order {order_id}"):
            item = await self._find_object(order_id)
            if item is not None:
                metadata = {"annotations": {RETRY_ANNOTATION: str(count)}}
                await self._hub.objects.patch_order(item, metadata=metadata, guarded=False)

    # --- one object ------------------------------------------------------------------------------

    async def _find_object(self, order_id: str) -> ObjectMapping | None:
        location = self._hub.order_locations.get(order_id)
        if location is None:
            item = await self._hub.objects.find_order(order_id)
        else:
            item = await self._hub.objects.get_order(*location)
        if item is None:
            self._hub.order_locations.pop(order_id, None)
            await self._hub.check_cluster()  # so that nothing is written to a wrong cluster either
            return None
        self._hub.order_locations[order_id] = (
            item["metadata"]["namespace"],
            item["metadata"]["name"],
        )
        return item

    async def _to_order(self, item: ObjectMapping | None, secrets: SecretScope) -> Order | None:
        """The order of an object. None also for an order that was forgotten and only has the operator's finalizer."""
        if item is None:
            return None
        order = from_kube.to_order(item, self._hub.order_settings)
        is_deleted = order.status.phase == OrderPhase.DELETED
        if is_deleted and not has_finalizer(item, hub_names.FEEDBACK_FINALIZER):
            return None
        if secrets is SecretScope.NONE or (
            secrets is SecretScope.NEEDED and not _may_need_inputs(order)
        ):
            return order
        credentials = None
        if secrets is SecretScope.ALL:
            credentials = await self._hub.objects.read_credentials(item)
        reference = from_kube.read_secret_ref(item)
        inputs: Mapping[str, str] = {}
        if reference is not None:
            namespace = item["metadata"]["namespace"]
            inputs = await self._hub.read_inputs(namespace, reference.name, reference.version)
        if not inputs and credentials is None:
            return order
        return from_kube.to_order(
            item, self._hub.order_settings, secrets=inputs, credentials=credentials
        )

    async def _create(self, order_id: str, tenant: str, spec: OrderSpec, now: datetime) -> None:
        place, objects = self._hub.order_settings, self._hub.objects
        namespace = place.get_tenant_namespace(tenant)
        for is_retry in (False, True):
            try:
                reference = await self._write_inputs(namespace, order_id, spec)
                order_spec = to_kube.to_spec(
                    order_id,
                    spec,
                    tenant=tenant,
                    order_settings=place,
                    ordered_at=now,
                    secret_ref=reference,
                )
                self._check_lease()
                await objects.create_order(order_id, tenant, order_spec)
                self._hub.order_locations[order_id] = namespace, hub_names.order_name(order_id)
                return
            except Exists as error:
                raise Conflict(f"order {order_id} was placed in the meantime") from error
            except NotFound:
                if is_retry:
                    raise
                await objects.ensure_namespace(tenant)  # the tenant's first order here

    async def _delete_inputs(self, order_id: str, tenant: str) -> None:
        """Deletes the inputs of an order that does not exist: they are written before the order."""
        place = self._hub.order_settings
        if tenant or place.shared_namespace:
            name = hub_names.inputs_secret_name(hub_names.order_name(order_id))
            await self._hub.objects.delete_secret(place.get_tenant_namespace(tenant), name)

    async def _write_inputs(
        self, namespace: str, order_id: str, spec: OrderSpec
    ) -> ClusterOrderSecretReference:
        """Writes the order's Secret, which must exist before the order that refers to it.

        If the order is never written, the next attempt uses the Secret, or `forget` deletes it.
        """
        contents = to_kube.collect_secrets(spec)
        order_name = hub_names.order_name(order_id)
        name = hub_names.inputs_secret_name(order_name)
        if not contents:
            return NO_CLUSTER_ORDER_SECRET_REFERENCE
        version = await self._hub.objects.write_secret(
            namespace, name, contents, order_name=order_name
        )
        return ClusterOrderSecretReference(name=name, version=version)


def _may_need_inputs(order: Order) -> bool:
    """Whether this pass may need the order's inputs: it is not deleted, and not settled at its newest spec."""
    settled = order.status.phase in (OrderPhase.READY, OrderPhase.DEGRADED)
    follows = order.status.observed_generation == order.spec.generation
    return order.metadata.deletion_timestamp is None and not (settled and follows)
