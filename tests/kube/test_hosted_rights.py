"""What the driver `hosted` needs to be allowed on a hub, and how it fares where requests take their time."""

from __future__ import annotations

import asyncio
from base64 import b64decode
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from boatyard.kube.client import KubeClient
from boatyard.kube.config import read_kubeconfig
from boatyard.kube.kinds import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, NAMESPACES, SECRETS
from boatyard.model import hub_names
from boatyard.model.errors import Unavailable
from boatyard.model.outcome import Done
from boatyard.platforms.drivers.hosted.kinds import HOSTED_CLUSTERS
from tests.support.control_plane import ControlPlane
from tests.support.kube_hub.hosted_values import well
from tests.support.kube_hub.manual_hypershift import MACHINES, ORDERS, ManualHyperShift

USER = "hosted-operator"
RBAC = "rbac.authorization.k8s.io"
DEPLOYED = Path(__file__).parents[2] / "deploy" / "rbac"


def shipped(file: str) -> dict[str, list[dict[str, Any]]]:
    """The rules of each ClusterRole in a file that is shipped."""
    documents = yaml.safe_load_all((DEPLOYED / file).read_text())
    return {
        one["metadata"]["name"]: one["rules"] for one in documents if one["kind"] == "ClusterRole"
    }


RULES = shipped("hosted.yaml")["boatyard-operator-hosted"]


async def allow(client: KubeClient, without: int | None = None) -> None:
    """Lets the user do what the operator's roles say, and nothing else."""
    rules = [rule for number, rule in enumerate(RULES) if number != without]
    rules += shipped("operator.yaml")["boatyard-operator"]
    await client.apply(CLUSTER_ROLES, USER, {"rules": rules})
    for name, reading in shipped("hosted.yaml").items():
        await client.apply(CLUSTER_ROLES, name, {"rules": reading})
    role = {"apiGroup": RBAC, "kind": "ClusterRole", "name": USER}
    subject = {"apiGroup": RBAC, "kind": "User", "name": USER}
    await client.apply(CLUSTER_ROLE_BINDINGS, USER, {"roleRef": role, "subjects": [subject]})


@pytest.fixture
async def operator(hosting: KubeClient, hosting_plane: ControlPlane) -> AsyncIterator[KubeClient]:
    config = read_kubeconfig(hosting_plane.kubeconfig())
    client = KubeClient(replace(config, impersonate_user=USER), timeout=30)
    yield client
    await client.close()


async def live(hypershift: ManualHyperShift, admin: KubeClient) -> None:
    """A whole life, the admin playing HyperShift."""
    host = f"host-{hypershift.id[:8]}"
    hypershift.client = admin
    await hypershift.up()
    assert isinstance(await hypershift.ensure(), Done)
    await hypershift.agent(host)
    await hypershift.join("compute-0", host)
    await hypershift.bind(host)
    await hypershift.machine("m-0", agent=host)
    assert isinstance(await hypershift.join("compute-0", host), Done)
    await hypershift.driver.observe(hypershift.key)
    await hypershift.give_access("clusters: [{cluster: {server: 'https://api.example:6443'}}]")
    await hypershift.driver.access(hypershift.key)
    assert "https://api.example:6443" in await read_by_others(hypershift, admin)
    await hypershift.leave("compute-0")
    await admin.delete(MACHINES, "m-0", hypershift.home)
    await hypershift.leave("compute-0")
    await hypershift.machine_gone("m-0")
    await hypershift.bind(host, bound=False)
    assert isinstance(await hypershift.leave("compute-0"), Done)
    await hypershift.driver.list_owned()
    for _ in range(2):
        await hypershift.driver.release_cluster(hypershift.key)
    await admin.delete(NAMESPACES, hypershift.home)


async def read_by_others(hypershift: ManualHyperShift, admin: KubeClient) -> str:
    """The kubeconfig, as tools that know OSAC find it: by the account `hub-access` beside the order."""
    account = f"system:serviceaccount:{ORDERS}:{hub_names.HUB_ACCESS}"
    reader = KubeClient(replace(admin.config, impersonate_user=account), timeout=30)
    try:
        cluster = await reader.get(HOSTED_CLUSTERS, hypershift.order, hypershift.namespace)
        secret = await reader.get(
            SECRETS, cluster["status"]["kubeconfig"]["name"], hypershift.namespace
        )
    finally:
        await reader.close()
    return b64decode(secret["data"]["kubeconfig"]).decode()


@pytest.mark.parametrize("settings", [{}, {"osac-compatible": "true"}], ids=str)
async def test_a_whole_life_needs_no_more_than_these_rights(
    hosting: KubeClient, operator: KubeClient, settings: dict[str, str]
) -> None:
    await allow(hosting)
    hypershift = ManualHyperShift(operator, "Agent", settings)
    await live(hypershift, hosting)

    async def is_gone() -> bool:
        return isinstance(await hypershift.driver.release_cluster(hypershift.key), Done)

    for _ in range(300):
        if await is_gone():
            return
        await asyncio.sleep(0.1)
    raise AssertionError("it is still there")


@pytest.mark.parametrize(
    "missing", range(len(RULES)), ids=lambda number: "-".join(RULES[number]["resources"])
)
async def test_without_one_of_them_it_says_what_it_may_not(
    hosting: KubeClient, operator: KubeClient, missing: int
) -> None:
    await allow(hosting, without=missing)
    hypershift = ManualHyperShift(operator, "Agent")
    hypershift.agents = f"hosts-{missing}"
    settings = {**hypershift.wanted.settings, "hosted.agent-namespace": hypershift.agents}
    hypershift.wanted = replace(hypershift.wanted, settings=settings)
    await hosting.apply(NAMESPACES, hypershift.agents, {})
    # Its provider is to mend that: for the tenant nothing is refused.
    with pytest.raises(Unavailable) as caught:
        await live(hypershift, hosting)
    assert caught.value.reason == "Forbidden"


# --- patience ----------------------------------------------------------------------------------

LATENCY = 0.2  # stands for five seconds
TRY = 6 * LATENCY + 0.3  # stands for the half minute that a step has; the rest is the real server's


class SlowClient(KubeClient):
    """Another's client, each of whose requests takes its time first."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client

    def __getattribute__(self, name: str) -> Any:
        if name == "_client":
            return object.__getattribute__(self, name)
        found = getattr(self._client, name)
        if name not in ("get", "list", "call", "apply", "merge_patch", "delete"):
            return found

        async def slowly(*args: Any, **words: Any) -> Any:
            await asyncio.sleep(LATENCY)
            return await found(*args, **words)

        return slowly


async def tries(ask: Callable[[], Awaitable[Any]], so: Callable[[], Awaitable[bool]]) -> int:
    """How many tries it takes, each cut short when its time is up."""
    for number in range(1, 9):
        try:
            async with asyncio.timeout(TRY):
                await ask()
        except TimeoutError:
            pass
        if await so():
            return number
    raise AssertionError("it never gets there")


async def test_where_every_request_takes_long_it_gets_there_all_the_same(
    hosting: KubeClient,
) -> None:
    hypershift = ManualHyperShift(hosting, "Agent")
    host = f"host-{hypershift.id[:8]}"
    hypershift.client = SlowClient(hosting)
    hypershift.driver = hypershift.another_driver()
    hypershift.client = hosting

    async def made() -> bool:
        return bool((await hosting.list(HOSTED_CLUSTERS, hypershift.namespace)).items)

    async def is_marked() -> bool:
        labels = (await hypershift.look_at_agent(host))["metadata"].get("labels") or {}
        return bool(labels)

    async def is_leaving() -> bool:
        return (await hypershift.slots()).get("compute-0", False)

    assert await tries(hypershift.ensure, made) <= 3
    await hypershift.say(well())
    await hosting.apply(NAMESPACES, hypershift.home, {})
    await hypershift.agent(host)
    assert await tries(lambda: hypershift.join("compute-0", host), is_marked) <= 3
    await hypershift.bind(host)
    await hypershift.machine("m-0", agent=host)
    assert await tries(lambda: hypershift.leave("compute-0"), is_leaving) <= 3
