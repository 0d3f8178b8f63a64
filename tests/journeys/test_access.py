"""When a cluster can be reached: as soon as its API answers, and rightly after it has changed."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from boatyard.model.generated.osac import ClusterState
from boatyard.pki.authority import CERTIFICATE_LIFETIME, Authority
from boatyard.platforms.drivers.sim import SimPlatform
from boatyard.platforms.port import ClusterAccess
from boatyard.resources.orders.credential_renewal import RENEW_BEFORE
from tests.support.simulated.environment import SimulatedEnvironment


class CountedAccess:
    """Counts how often the platform is asked for access, and can give another kubeconfig out."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.times = 0
        self.renewed = ""
        original = SimPlatform.access

        async def access(platform: SimPlatform, cluster_key: str) -> ClusterAccess:
            self.times += 1
            found = await original(platform, cluster_key)
            return replace(found, kubeconfig=self.renewed or found.kubeconfig)

        monkeypatch.setattr(SimPlatform, "access", access)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> CountedAccess:
    return CountedAccess(monkeypatch)


async def test_the_kubeconfig_is_there_before_the_nodes(
    environment: SimulatedEnvironment, asked: CountedAccess
) -> None:
    await environment.break_service("platform.ensure_node", "dead")
    web = await environment.order("web", sizes={"compute": 2})

    async def reachable() -> bool:
        return bool((await environment.order_of(web)).status.credentials.kubeconfig)

    await environment.run_to(web, ClusterState.PROGRESSING)
    await environment.run(reachable, within=timedelta(minutes=10))
    await environment.run(within=timedelta(minutes=10))
    cluster = await environment.cluster(web)
    assert cluster.status.state == ClusterState.PROGRESSING
    assert cluster.status.api_url.startswith("https://api.web-")
    assert asked.times == 1, "what is known is not asked for on every pass"

    await environment.heal()
    await environment.run_to(web, ClusterState.READY)
    assert asked.times == 2, "once more when all is as wanted"
    await environment.run(within=timedelta(minutes=30))
    assert asked.times == 2


async def test_what_an_upgrade_renews_is_known_when_it_is_ready(
    environment: SimulatedEnvironment, asked: CountedAccess
) -> None:
    web = await environment.order("web", sizes={"compute": 1})
    await environment.run_to(web, ClusterState.READY)
    asked.renewed = "kubeconfig: renewed"
    await environment.set_version(web, "4.18.3")

    async def upgraded() -> bool:
        status = (await environment.cluster(web)).status
        return (status.observed_generation, status.state) == (2, ClusterState.READY)

    await environment.run(upgraded)
    assert (await environment.order_of(web)).status.credentials.kubeconfig == "kubeconfig: renewed"


async def test_it_is_not_called_ready_with_credentials_that_may_be_old(
    environment: SimulatedEnvironment, asked: CountedAccess
) -> None:
    web = await environment.order("web", sizes={"compute": 1})
    await environment.run_to(web, ClusterState.READY)
    await environment.break_service("platform.access", "dead")
    await environment.scale(web, compute=2)
    await environment.run_to(web, ClusterState.PROGRESSING)
    await environment.run(within=timedelta(minutes=10))
    assert await environment.state(web) == ClusterState.PROGRESSING
    assert (await environment.order_of(web)).status.credentials.kubeconfig, "the old one is kept"
    await environment.heal()
    await environment.run_to(web, ClusterState.READY, within=timedelta(minutes=1))


async def test_a_simulated_cluster_says_that_it_is(environment: SimulatedEnvironment) -> None:
    web = await environment.order("web", sizes={"compute": 1})
    await environment.run_to(web, ClusterState.READY)
    assert (await environment.order_of(web)).status.credentials.simulated


def kubeconfig_until(end: datetime) -> str:
    authority = Authority.create("any", now=end - CERTIFICATE_LIFETIME)
    pem = authority.issue("admin", client=True, now=end - CERTIFICATE_LIFETIME)
    data = base64.b64encode(pem.certificate).decode()
    return json.dumps({"users": [{"name": "admin", "user": {"client-certificate-data": data}}]})


async def test_an_access_that_ends_soon_is_asked_for_again_while_nothing_else_happens(
    environment: SimulatedEnvironment, asked: CountedAccess
) -> None:
    now = environment.clock.now()
    asked.renewed = before = kubeconfig_until(now + RENEW_BEFORE + timedelta(hours=2))
    web = await environment.order("web", sizes={"compute": 1})
    await environment.run_to(web, ClusterState.READY)
    times = asked.times
    await environment.run(within=timedelta(hours=1))
    assert asked.times == times, "it is good for long"

    asked.renewed = after = kubeconfig_until(now + timedelta(days=365))
    await environment.break_service("platform.access", "dead")
    await environment.run(within=timedelta(hours=2))
    assert await environment.state(web) == ClusterState.READY, "the one we have is still good"
    assert (await environment.order_of(web)).status.credentials.kubeconfig == before
    await environment.heal()

    async def renewed() -> bool:
        return (await environment.order_of(web)).status.credentials.kubeconfig == after

    await environment.run(renewed, within=timedelta(hours=1))
    times = asked.times
    await environment.run(within=timedelta(hours=1))
    assert asked.times == times
