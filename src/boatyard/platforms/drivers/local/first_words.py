"""The first that is said to an API server: do you listen, are you ready, and who may do what."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from enum import Enum

from boatyard.kube.client import KubeClient
from boatyard.kube.kinds import NAMESPACES, Kind
from boatyard.model.errors import BoatyardError, Refused
from boatyard.platforms.drivers.local.certificates import ADMINS, KUBELET_CLIENTS

HUNG_AFTER = 12  # looks in a row without an answer
# Where beginning anew has not helped: a full machine is slow, and not hung.
HUNG_AT_MOST = 16 * HUNG_AFTER
READY_SECONDS = 10.0  # an API that takes longer to answer does not answer
_ROLE_BINDINGS = Kind(
    "rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", False
)


class Heard(Enum):
    """What came back."""

    YES = "yes"
    NO = "no"  # nothing, or that it is not ready
    STRANGER = "stranger"  # it answers, and does not know us: that is no fault of its own


class Silence:
    """For how many looks an API server has not answered, and for how many that is borne."""

    def __init__(self) -> None:
        self._looks = 0
        self.patience = HUNG_AFTER

    def note(self, result: Heard) -> int:
        """The looks in a row without an answer."""
        self._looks = self._looks + 1 if result is Heard.NO else 0
        if result is Heard.YES:
            self.patience = HUNG_AFTER
        return self._looks

    @property
    def is_long(self) -> bool:
        return self._looks >= self.patience

    def be_more_patient(self) -> None:
        """With one that begins anew."""
        self._looks = 0
        self.patience = min(2 * self.patience, HUNG_AT_MOST)


async def listens(client: KubeClient) -> Heard:
    """Whoever asks for a list is answered. A second or two later it calls itself ready."""
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
    """Whom we issue certificates for, and the API server's own client, have their rights by name, not by magic."""
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
