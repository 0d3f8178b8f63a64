"""The example of the simulated environment in tests/support/README.md."""

from __future__ import annotations

from boatyard.model.generated.osac import ClusterState
from tests.support.simulated.environment import SimulatedEnvironment


async def test_a_cluster_survives_an_outage_of_dns_and_leaves_nothing(
    environment: SimulatedEnvironment,
) -> None:
    await environment.break_service("dns", "dead")
    web = await environment.order("web", sizes={"compute": 2})
    await environment.run_to(web, ClusterState.PROGRESSING)
    await environment.heal()
    await environment.run_to(web, ClusterState.READY)
    await environment.delete(web)
    await environment.run_until_gone(web)
    await environment.assert_nothing_left()
