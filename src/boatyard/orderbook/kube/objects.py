"""Requests about orders, their secrets and leftovers on a Kubernetes hub. Used by the book `kube` and the hub's queue.

Every write of an order is guarded by the version that was read: Conflict when another write came first.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from boatyard.kube.client import KubeClient
from boatyard.kube.kinds import NAMESPACES, SECRETS
from boatyard.model import hub_names
from boatyard.model.errors import Exists, NotFound
from boatyard.model.generated.boatyard import Credentials, Leftover, Order
from boatyard.orderbook.kube.kinds import CLUSTER_ORDERS, LEFTOVERS
from boatyard.orderbook.kube.mapping import from_kube, kube_json, leftovers, status, to_kube
from boatyard.orderbook.kube.mapping.from_kube import HubOrderSettings

Object = dict[str, Any]
ObjectMapping = Mapping[str, Any]

TENANT_LABEL = "osac.openshift.io/tenant-ref"  # label of a tenant's namespace
_CREDENTIAL_KEYS = ("kubeconfig", "username", "password")  # keys of the Secret, as in Credentials
_SIMULATED_KEY = "simulated"
_KINDS = {"Order": CLUSTER_ORDERS, "Leftover": LEFTOVERS}


class HubObjects:
    def __init__(self, client: KubeClient, order_settings: HubOrderSettings) -> None:
        self.client = client
        self.order_settings = order_settings

    # --- orders ----------------------------------------------------------------------------------

    async def find_order(self, order_id: str) -> Object | None:
        """The object of that order in any namespace. It is found by its name, which cannot change."""
        name = hub_names.order_name(order_id)
        listed = await self.client.list(
            CLUSTER_ORDERS, self.order_settings.shared_namespace, fields=f"metadata.name={name}"
        )
        for item in listed.items:
            if from_kube.read_order_id(item, self.order_settings) == order_id:
                return item
        return None

    async def get_order(self, namespace: str, name: str) -> Object | None:
        try:
            return await self.client.get(CLUSTER_ORDERS, name, namespace)
        except NotFound:
            return None

    async def create_order(self, order_id: str, tenant: str, spec: Object) -> Object:
        """Creates an order with both finalizers. Exists when the name is taken."""
        namespace = self.order_settings.get_tenant_namespace(tenant)
        body: Object = {
            "metadata": {
                "name": hub_names.order_name(order_id),
                "namespace": namespace,
                "labels": {
                    hub_names.ORDER_UUID: hub_names.label_value(order_id),
                    hub_names.MANAGED_BY: hub_names.BOATYARD,
                },
                "annotations": {hub_names.TENANT: tenant, hub_names.CLUSTER: order_id},
                "finalizers": [hub_names.OPERATOR_FINALIZER, hub_names.FEEDBACK_FINALIZER],
            },
            "spec": spec,
        }
        return await self.client.create(CLUSTER_ORDERS, body, namespace)

    async def replace_spec(self, item: ObjectMapping, spec: Object) -> Object:
        """Replaces our fields of the spec; other fields stay."""
        foreign_fields = {
            name: value
            for name, value in (item.get("spec") or {}).items()
            if name not in to_kube.SPEC_FIELDS
        }
        return await self.client.replace(
            CLUSTER_ORDERS, {**item, "spec": {**foreign_fields, **spec}}
        )

    async def patch_order(
        self,
        item: ObjectMapping,
        *,
        spec: Object | None = None,
        metadata: Object | None = None,
        guarded: bool = True,
    ) -> Object:
        """Merges fields into the order; None removes one. Without the guard, whatever else was changed meanwhile."""
        current = item["metadata"]
        guard = "resourceVersion" if guarded else "uid"
        patch: Object = {"metadata": {guard: current[guard], **(metadata or {})}}
        if spec:
            patch["spec"] = spec
        return await self.client.merge_patch(
            CLUSTER_ORDERS, current["name"], patch, current["namespace"]
        )

    async def set_finalizers(
        self, item: ObjectMapping, *, add: str = "", remove: str = ""
    ) -> Object | None:
        """Adds or removes a finalizer and returns the order; None when it was deleted with its last finalizer."""
        current_finalizers = list(item["metadata"].get("finalizers") or ())
        finalizers = [finalizer for finalizer in current_finalizers if finalizer != remove]
        if add and add not in finalizers:
            finalizers.append(add)
        if finalizers == current_finalizers:
            return dict(item)
        try:
            return await self.patch_order(item, metadata={"finalizers": finalizers or None})
        except NotFound:
            return None

    async def apply_status(self, item: ObjectMapping, order: Order, now: datetime) -> Object:
        metadata = item["metadata"]
        body: Object = {
            "metadata": {"resourceVersion": metadata["resourceVersion"]},
            "status": status.to_status(order, item, now),
        }
        return await self.client.apply(
            CLUSTER_ORDERS, metadata["name"], body, metadata["namespace"], subresource="status"
        )

    async def delete_order(self, item: ObjectMapping) -> None:
        metadata = item["metadata"]
        await self.client.delete(
            CLUSTER_ORDERS, metadata["name"], metadata["namespace"], uid=metadata["uid"]
        )

    async def ensure_namespace(self, tenant: str) -> None:
        """Creates the namespace of a tenant's orders. An existing one is left as it is."""
        body: Object = {
            "metadata": {
                "name": self.order_settings.get_tenant_namespace(tenant),
                "labels": {hub_names.MANAGED_BY: hub_names.BOATYARD},
            }
        }
        if not self.order_settings.shared_namespace:
            body["metadata"]["labels"][TENANT_LABEL] = hub_names.label_value(tenant)
            body["metadata"]["annotations"] = {hub_names.TENANT: tenant}
        try:
            await self.client.create(NAMESPACES, body)
        except Exists:
            return

    async def read_again(self, kind: str, item: ObjectMapping) -> Object | None:
        """Reads an order or a leftover again; None when it was deleted, or another object has its name."""
        metadata = item["metadata"]
        try:
            current = await self.client.get(_KINDS[kind], metadata["name"], metadata["namespace"])
        except NotFound:
            return None
        return current if current["metadata"]["uid"] == metadata["uid"] else None

    # --- secrets ---------------------------------------------------------------------------------

    async def read_secret(self, namespace: str, name: str) -> dict[str, str] | None:
        try:
            secret = await self.client.get(SECRETS, name, namespace)
        except NotFound:
            return None
        data = secret.get("data") or {}
        return {key: base64.b64decode(value).decode() for key, value in data.items()}

    async def write_secret(
        self, namespace: str, name: str, contents: Mapping[str, str], *, order_name: str
    ) -> str:
        """Writes the Secret with exactly these contents. Returns its version."""
        body: Object = {
            "metadata": {
                "labels": {hub_names.ORDER: order_name, hub_names.MANAGED_BY: hub_names.BOATYARD},
            },
            "type": "Opaque",
            "data": {
                key: base64.b64encode(text.encode()).decode() for key, text in contents.items()
            },
        }
        secret = await self.client.apply(SECRETS, name, body, namespace)
        return str(secret["metadata"]["resourceVersion"])

    async def delete_secret(self, namespace: str, name: str) -> None:
        await self.client.delete(SECRETS, name, namespace)

    async def read_credentials(self, item: ObjectMapping) -> Credentials:
        """The cluster's credentials; empty before there are any."""
        reference = from_kube.read_credentials_ref(item)
        secret = (
            await self.read_secret(reference["namespace"], reference["name"]) if reference else None
        )
        contents = secret or {}
        return Credentials(
            kubeconfig=contents.get("kubeconfig", ""),
            username=contents.get("username", ""),
            password=contents.get("password", ""),
            simulated=contents.get(_SIMULATED_KEY) == "true",
        )

    async def write_credentials(self, item: ObjectMapping, order: Order) -> None:
        credentials = order.status.credentials
        contents = {name: getattr(credentials, name) for name in _CREDENTIAL_KEYS}
        contents = {name: text for name, text in contents.items() if text}
        if credentials.simulated:
            contents[_SIMULATED_KEY] = "true"
        reference = status.make_credentials_ref(order, item)
        await self.write_secret(
            reference["namespace"], reference["name"], contents, order_name=item["metadata"]["name"]
        )

    async def delete_credentials(self, item: ObjectMapping) -> None:
        """Deletes the credentials, also when no status refers to them: their writer may have died before it did."""
        metadata = item["metadata"]
        reference = from_kube.read_credentials_ref(item) or {}
        name = hub_names.credentials_secret_name(metadata["name"])
        for namespace in dict.fromkeys((metadata["namespace"], reference.get("namespace"))):
            if namespace:
                await self.delete_secret(namespace, name)

    async def delete_inputs(self, item: ObjectMapping) -> None:
        """Deletes the order's inputs. The service does this, unless somebody removed its finalizer from the order."""
        reference = from_kube.read_secret_ref(item)
        if reference is not None:
            await self.delete_secret(item["metadata"]["namespace"], reference.name)

    # --- leftovers -------------------------------------------------------------------------------

    async def find_leftover(self, leftover_id: str) -> Object | None:
        name = leftovers.make_leftover_name(leftover_id)
        listed = await self.client.list(
            LEFTOVERS, self.order_settings.shared_namespace, fields=f"metadata.name={name}"
        )
        for item in listed.items:
            if leftovers.read_leftover_id(item, self.order_settings) == leftover_id:
                return item
        return None

    async def create_leftover(self, leftover: Leftover) -> Object | None:
        """Creates the leftover. None when it exists: a process created it and died before it recorded that.

        When its tenant's namespace is deleted, or its tenant is not known, it is created in `place.aside`.
        """
        try:
            if leftover.metadata.tenant or not self.order_settings.fallback_namespace:
                return await self._create_leftover(leftover)
        except NotFound:
            if self.order_settings.fallback_namespace in (
                "",
                self.order_settings.get_tenant_namespace(leftover.metadata.tenant),
            ):
                raise
        return await self._create_leftover(leftover, aside=True)

    async def _create_leftover(self, leftover: Leftover, *, aside: bool = False) -> Object | None:
        body = leftovers.to_object(leftover, self.order_settings, aside=aside)
        try:
            return await self.client.create(LEFTOVERS, body)
        except Exists:
            return None

    async def replace_leftover(self, item: ObjectMapping, leftover: Leftover) -> Object:
        body: Object = {**item, "status": kube_json.dump(leftover.status)}
        return await self.client.replace(LEFTOVERS, body)

    async def delete_leftover(self, item: ObjectMapping) -> None:
        metadata = item["metadata"]
        await self.client.delete(
            LEFTOVERS, metadata["name"], metadata["namespace"], uid=metadata["uid"]
        )


def has_finalizer(item: ObjectMapping, finalizer: str) -> bool:
    return finalizer in (item["metadata"].get("finalizers") or ())
