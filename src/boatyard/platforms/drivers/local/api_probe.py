"""Probes of an API server (does it answer, is it ready), and its first role bindings."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from enum import Enum

from boatyard.kube.client import KubeClient
from boatyard.kube.kinds import NAMESPACES, KubeKind
from boatyard.model.backoff import Backoff
from boatyard.model.errors import BoatyardError, Refused
from boatyard.platforms.drivers.local.certificates import ADMIN_GROUP, KUBELET_CLIENT_GROUP

FIRST_FAILURE_LIMIT = 12  # probes in a row without an answer
# The bound after restarts that did not help: on a full machine an API server is slow, not hung.
LARGEST_FAILURE_LIMIT = 16 * FIRST_FAILURE_LIMIT
_BOUNDS = Backoff(first=FIRST_FAILURE_LIMIT, longest=LARGEST_FAILURE_LIMIT)  # in probes
PROBE_TIMEOUT_SECONDS = 10.0  # a slower answer counts as none
_ROLE_BINDINGS = KubeKind(
    "rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", False
)


class ProbeResult(Enum):
    """The result of a probe."""

    YES = "yes"
    NO = "no"  # nothing, or that it is not ready
    UNAUTHORIZED = "stranger"  # it answers, but rejects our certificate: a restart would not help


class ProbeFailures:
    """Counts the probes in a row without an answer, up to a bound that grows with each restart."""

    def __init__(self) -> None:
        self._count = 0
        self._restarts = 0  # in a row that did not help

    def record(self, result: ProbeResult) -> int:
        """Records a probe. Returns the number of probes in a row without an answer."""
        self._count = self._count + 1 if result is ProbeResult.NO else 0
        if result is ProbeResult.YES:
            self._restarts = 0
        return self._count

    @property
    def limit(self) -> float:
        """How many probes in a row without an answer are a long silence."""
        return _BOUNDS.pause(self._restarts + 1)

    @property
    def has_reached_limit(self) -> bool:
        return self._count >= self.limit

    def double_limit(self) -> None:
        """Doubles the bound, after a restart."""
        self._count = 0
        self._restarts += 1


async def probe_listening(client: KubeClient) -> ProbeResult:
    """Probes whether the API server answers a list. It becomes ready a second or two later."""
    return await _probe(client.list(NAMESPACES))


async def probe_ready(client: KubeClient) -> ProbeResult:
    return await _probe(client.get_text("/readyz"))


async def _probe(request: Awaitable[object]) -> ProbeResult:
    try:
        async with asyncio.timeout(PROBE_TIMEOUT_SECONDS):
            await request
    except Refused as error:
        return ProbeResult.UNAUTHORIZED if error.reason == "Unauthorized" else ProbeResult.NO
    except (BoatyardError, TimeoutError):
        return ProbeResult.NO
    return ProbeResult.YES


async def bind_groups(client: KubeClient) -> None:
    """Binds the groups of our administrators and of the API server's kubelet client to their roles.

    Their permissions are visible as bindings, unlike those of the built-in group system:masters.
    """
    for name, role in (
        (ADMIN_GROUP, "cluster-admin"),
        (KUBELET_CLIENT_GROUP, "system:kubelet-api-admin"),
    ):
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
