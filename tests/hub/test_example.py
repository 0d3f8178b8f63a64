"""The example of the Kubernetes hub in tests/support/README.md."""

from __future__ import annotations

from datetime import UTC, datetime

from boatyard.model.generated.boatyard import OrderPhase
from tests.contracts.order_books import SPEC
from tests.support.kube_hub.environment import KubeHubEnvironment


async def test_an_operator_that_was_away_carries_out_what_was_ordered_meanwhile(
    hub: KubeHubEnvironment,
) -> None:
    await hub.book.put("o-1", tenant="acme", spec=SPEC, now=datetime.now(UTC))
    async with hub.operator():
        order = await hub.until_phase("o-1", OrderPhase.READY)
        assert order.status.ready_nodes == {"compute": 3}
        await hub.delete("o-1")
        await hub.until_phase("o-1", OrderPhase.DELETED)
    assert await hub.truth() == {}
