"""Probes of an API server (does it answer, is it ready), and its first role bindings."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from enum import Enum

from boatyard.kube.client import KubeClient
from boatyard.kube.kinds import NAMESPACES, Kind
from boatyard.model.errors import BoatyardError, Refused
from boatyard.platforms.drivers.local.certificates import ADMINS, KUBELET_CLIENTS

HUNG_AFTER = 12  # probes in a row without an answer
# The bound after restarts that did not help: on a full machine an API server is slow, not hung.
HUNG_AT_MOST = 16 * HUNG_AFTER
READY_SECONDS = 10.0  # a slower answer counts as none
_ROLE_BINDINGS = Kind(
    "rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", False
)


class Heard(Enum):
    """The result of a probe."""

    YES = "yes"
    NO = "no"  # nothing, or that it is not ready
    STRANGER = "stranger"  # it answers, but rejects our certificate: a restart would not help


class Silence:
    """Counts the probes in a row without an answer, up to a bound that grows with each restart."""

    def __init__(self) -> None:
        self._looks = 0
        self.patience = HUNG_AFTER

    def note(self, result: Heard) -> int:
        """Records a probe. Returns the number of probes in a row without an answer."""
        self._looks = self._looks + 1 if result is Heard.NO else 0
        if result is Heard.YES:
            self.patience = HUNG_AFTER
        return self._looks

    @property
    def is_long(self) -> bool:
        return self._looks >= self.patience

    def be_more_patient(self) -> None:
        """Doubles the bound, after a restart."""
        self._looks = 0
        self.patience = min(2 * self.patience, HUNG_AT_MOST)


async def listens(client: KubeClient) -> Heard:
    """Probes whether the API server answers a list. It becomes ready a second or two later."""
    return await _hear(client.list(NAMESPACES))


async def is_ready(client: KubeClient) -> Heard:
    return await _hear(client.text("/readyz"))


async def _hear(request: Awaitable[object]) -> Heard:
    try:
        async with asyncio.timeout(READY_SECONDS):
            await request
    except Refused as error:
        return Heard.STRANGER if error.reason == "Unauthorized" else Heard.NO
    except (BoatyardError, TimeoutError):
        return Heard.NO
    return Heard.YES


async def bind_groups(client: KubeClient) -> None:
    """Binds the groups of our administrators and of the API server's kubelet client to their roles.

    Their permissions are visible as bindings, unlike those of the built-in group system:masters.
    """
    for name, role in ((ADMINS, "cluster-admin"), (KUBELET_CLIENTS, "system:kubelet-api-admin")):
        await client.apply(
            _ROLE_BINDINGS,
            name,
            {
                "roleRef": {
                    "apiGroup": "rbac.authorization.k8s.io",
                    "kind": "ClusterRole",
                    "name": role,
                },
                "subjects": [
                    {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": name}
                ],
            },
        )
