"""The Kubernetes hub of an environment: keeps orders while workers and operators are killed. Used by the environment.

The API server is given and outlives every process, as PostgreSQL does; each environment has its own namespaces on it.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import msgspec

from boatyard.kube.client import KubeClient
from boatyard.kube.config import read_kubeconfig
from boatyard.kube.kinds import CONFIG_MAPS, LEASES, NAMESPACES, SECRETS, KubeKind
from boatyard.ledger.changes import Due, Replace
from boatyard.ledger.ledger import Ledger
from boatyard.model import hub_names
from boatyard.model.errors import NotFound
from boatyard.model.generated.osac import Hub
from boatyard.orderbook.kube.kinds import CLAIMS, CLUSTER_ORDERS, LEFTOVERS
from boatyard.proof.evidence import ClaimRow
from boatyard.proof.kill_points import KillPoints
from boatyard.resources.hubs.preparation import prepare_hub
from boatyard.resources.hubs.settings import (
    OPERATOR_LEASE_SETTING,
    OPERATOR_NAME,
    ORDERS_NAMESPACE_SETTING,
)
from boatyard.wiring.hub_manifests import read_shipped_crds

_TIMEOUT_SECONDS = 30.0
_WRITE_METHODS = ("POST", "PUT", "PATCH", "DELETE")


@dataclass(frozen=True)
class ProofHubAccess:
    """How a worker process reaches the hub."""

    kubeconfig: bytes
    system: str
    orders: str


class InstrumentedHubClient(KubeClient):
    """The client of the service and the operator to the hub; every write is a point."""

    points: KillPoints  # of the process; set once

    async def _send_with_retries(self, question: Any) -> Any:
        if question.method not in _WRITE_METHODS:
            return await super()._send_with_retries(question)
        label = request_label(question.method, question.path)
        self.points.pass_point(f"before:{label}")
        response = await super()._send_with_retries(question)
        self.points.pass_point(f"after:{label}")
        return response


def request_label(method: str, path: str) -> str:
    """The label of a request: method and resource, without names, which differ between runs."""
    parts = path.strip("/").split("/")
    parts = parts[2:] if parts[0] == "api" else parts[3:]  # without group and version
    if parts[0] == "namespaces" and len(parts) > 2:
        parts = parts[2:]
    resource_path = "/".join(parts[::2])  # the kind, and its subresource
    return f"{'claim' if resource_path == CLAIMS.plural else 'commit'}:hub {method} {resource_path}"


class EnvironmentHub:
    """A hub in namespaces of its own. Environments on one API server never share them, not even with deleted ones."""

    def __init__(self, kubeconfig: bytes) -> None:
        name = f"prove-{uuid.uuid4().hex[:8]}"
        self.access = ProofHubAccess(kubeconfig, system=f"{name}-system", orders=f"{name}-orders")
        self._client = KubeClient(read_kubeconfig(kubeconfig), timeout=_TIMEOUT_SECONDS)

    async def open(self, ledger: Ledger) -> None:
        """Turns the only hub of the ledger into this one, and prepares it for orders."""
        (hub,) = (await ledger.documents.list(Hub)).items
        # `bury` removes the lead of a dead operator; otherwise one would have to wait for its end.
        settings = {ORDERS_NAMESPACE_SETTING: self.access.orders, OPERATOR_LEASE_SETTING: "none"}
        spec = msgspec.structs.replace(
            hub.spec,
            kubeconfig=self.access.kubeconfig,
            namespace=self.access.system,
            settings={**hub.spec.settings, **settings},
        )
        updated_hub = msgspec.structs.replace(hub, spec=spec)
        await self._client.apply(NAMESPACES, self.access.orders, {})
        await prepare_hub(self._client, updated_hub, read_shipped_crds())
        now = ledger.clock.now()
        await ledger.commit([Replace(updated_hub), Due("Hub", hub.id, now, hub=hub.id)], now=now)

    async def expire_operator_lease(self) -> None:
        """Ends the lead of a dead operator, as waiting for its end would."""
        await self._client.delete(LEASES, OPERATOR_NAME, self.access.system)

    async def read_objects(self, cluster_id: str) -> Mapping[str, Any]:
        """What the hub holds of a cluster, by kind, without names drawn from a pool."""
        order = hub_names.order_name(cluster_id)
        hub_objects: dict[str, Any] = {}
        for cluster_order in await self._list_all(CLUSTER_ORDERS):
            if cluster_order["metadata"]["name"] == order:
                finalizers = sorted(cluster_order["metadata"].get("finalizers") or ())
                hub_objects["order"] = {
                    "phase": (cluster_order.get("status") or {}).get("phase"),
                    "finalizers": finalizers,
                }
        for kind in (SECRETS, LEFTOVERS):
            names = [item["metadata"]["name"] for item in await self._list_all(kind)]
            own_names = sorted(name.replace(order, "ORDER") for name in names if order in name)
            if own_names:
                hub_objects[kind.plural] = own_names
        owners = [claim.owner for claim in await self.list_claims()]
        claims = sorted(
            owner.partition("/")[2] for owner in owners if _belongs_to(owner, cluster_id)
        )
        if claims:
            hub_objects["claims"] = claims
        return hub_objects

    async def list_claims(self) -> list[ClaimRow]:
        claim_list = await self._client.list(CLAIMS, self.access.system)
        return [
            ClaimRow(**{name: claim["spec"][name] for name in ("pool", "item", "owner")})
            for claim in claim_list.items
        ]

    async def close(self) -> None:
        """Removes everything of the environment, also where no controller empties namespaces."""
        for kind in (CLUSTER_ORDERS, LEFTOVERS, SECRETS):
            for item in await self._list_all(kind):
                name = item["metadata"]["name"]
                with suppress(NotFound):
                    if item["metadata"].get("finalizers"):
                        no_finalizers = {"metadata": {"finalizers": None}}
                        await self._client.merge_patch(
                            kind, name, no_finalizers, self.access.orders
                        )
                await self._client.delete(kind, name, self.access.orders)
        for claim in (await self._client.list(CLAIMS, self.access.system)).items:
            await self._client.delete(CLAIMS, claim["metadata"]["name"], self.access.system)
        await self.expire_operator_lease()
        await self._client.delete(CONFIG_MAPS, hub_names.HUB_CONFIG, self.access.system)
        for namespace in (self.access.orders, self.access.system):
            await self._client.delete(NAMESPACES, namespace)
        await self.close_connection()

    async def close_connection(self) -> None:
        """Closes the connection; the hub stays as it is."""
        await self._client.close()

    async def _list_all(self, kind: KubeKind) -> list[dict[str, Any]]:
        return (await self._client.list(kind, self.access.orders)).items


def _belongs_to(owner: str, cluster_id: str) -> bool:
    return owner.startswith(f"{cluster_id}/")
