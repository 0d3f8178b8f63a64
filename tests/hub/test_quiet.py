"""What is not worth a write to a hub: kept in mind, and told once a minute."""

from __future__ import annotations

from datetime import timedelta

from boatyard.model.generated.boatyard import OrderStatus, Step
from boatyard.orderbook.kube.book import KubeOrderBook
from boatyard.orderbook.kube.kinds import CLUSTER_ORDERS
from tests.contracts.order_books import NOW, SPEC, KubeBookHarness


async def test_a_next_try_alone_is_kept_in_mind_and_written_once_a_minute(
    harness: KubeBookHarness,
) -> None:
    """Orders wait for minutes and are looked at every second: that is no news for the hub."""
    await harness.book.put("c-1", tenant="acme", spec=SPEC, now=NOW)

    async def tried(times: int, after: float = 0.0, message: str = "waits") -> str:
        step = Step(name="install", message=message, tries=times, next_look=NOW)
        now = NOW + timedelta(seconds=after)
        await harness.set_status("c-1", OrderStatus(steps=(step,)), now=now)
        (item,) = (await harness.client.list(CLUSTER_ORDERS, harness.place.shared_namespace)).items
        kept = await KubeOrderBook(harness.hub, view=harness.view).get("c-1")
        assert kept is not None
        assert kept.status.steps[0].tries == times
        return str(item["metadata"]["resourceVersion"])

    first = await tried(1)
    assert await tried(2, after=1) == first
    assert await tried(3, after=2) == first
    later = await tried(4, after=62)
    assert later != first
    assert await tried(5, after=63) == later
    assert await tried(6, after=64, message="waits for something else") != later
