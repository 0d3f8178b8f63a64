"""Each hub has one client, and a new one as soon as its credentials are new."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
import yaml

from boatyard.kube.circuit_breaker import FAILING_REASON
from boatyard.kube.kinds import CONFIG_MAPS
from boatyard.model.errors import Unavailable
from boatyard.model.generated.osac import Hub, HubSpec, Metadata
from boatyard.wiring.hub_clients import HubClients
from tests.support.scripted_kube import Says, Watches, scripted_kube, thing

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
SECRET = "kept-to-ourselves"


def kubeconfig(
    server: str, token: str = SECRET, *, user: Any = None, cluster: Any = None, context: str = "c"
) -> bytes:
    text: str = yaml.safe_dump(
        {
            "clusters": [{"name": "c", "cluster": {"server": server, **(cluster or {})}}],
            "users": [{"name": "u", "user": {"token": token, **(user or {})}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "current-context": context,
        }
    )
    return text.encode()


def a_hub(
    config: bytes, *, id: str = "one", generation: int = 1, settings: dict[str, str] | None = None
) -> Hub:
    about = Metadata(name=id, creation_timestamp=BEGIN, generation=generation)
    return Hub(id=id, metadata=about, spec=HubSpec(kubeconfig=config, settings=settings or {}))


async def test_the_same_credentials_are_one_client() -> None:
    clients = HubClients()
    first = await clients.client(a_hub(kubeconfig("https://a.example")))

    again = await clients.client(a_hub(kubeconfig("https://a.example"), generation=7))
    other = await clients.client(a_hub(kubeconfig("https://a.example"), id="two"))

    assert again is first
    assert other is not first
    await clients.close()
    assert first.closed.is_set()
    assert other.closed.is_set()


async def test_new_credentials_take_effect_with_the_next_use() -> None:
    clients = HubClients()
    async with scripted_kube() as told:
        told.tell(Says(thing("a", 1)), Says(thing("a", 1)))
        for generation, token in ((1, "old"), (2, "new")):
            hub = a_hub(kubeconfig(told.url, token), generation=generation)
            await (await clients.client(hub)).get(CONFIG_MAPS, "a", "ns")
        await clients.close()

        assert [asked.headers["Authorization"] for asked in told.asked] == [
            "Bearer old",
            "Bearer new",
        ]


async def test_a_watch_on_replaced_credentials_ends_so_that_it_begins_anew() -> None:
    clients = HubClients()
    async with scripted_kube() as told:
        told.tell(Watches(then="hang"))
        old = await clients.client(a_hub(kubeconfig(told.url, "old")))
        watch = old.watch(CONFIG_MAPS, "ns", resource_version="1")
        under_way = asyncio.create_task(anext(watch, None))
        await told.until_asked(1)

        new = await clients.client(a_hub(kubeconfig(told.url, "new"), generation=2))

        with pytest.raises(Unavailable):
            await asyncio.wait_for(under_way, timeout=5)
        assert not new.closed.is_set()
        await clients.close()


async def test_who_read_the_hub_before_the_change_is_given_the_newer_client() -> None:
    clients = HubClients()
    old = a_hub(kubeconfig("https://a.example", "old"))
    await clients.client(old)
    newer = await clients.client(a_hub(kubeconfig("https://a.example", "new"), generation=2))

    assert await clients.client(old) is newer
    assert not newer.closed.is_set()
    await clients.close()


async def test_a_hub_registered_anew_is_another_hub() -> None:
    clients = HubClients()
    before = a_hub(kubeconfig("https://a.example"), generation=9)
    first = await clients.client(before)
    about = msgspec.structs.replace(
        before.metadata, creation_timestamp=BEGIN + timedelta(days=1), generation=1
    )
    anew = Hub(id="one", metadata=about, spec=HubSpec(kubeconfig=kubeconfig("https://b.example")))

    second = await clients.client(anew)

    assert first.closed.is_set()
    assert second.config.server == "https://b.example"
    await clients.close()


async def test_a_client_that_was_closed_is_made_again() -> None:
    clients = HubClients()
    hub = a_hub(kubeconfig("https://a.example"))
    await (await clients.client(hub)).close()

    assert not (await clients.client(hub)).closed.is_set()
    await clients.forget("one")
    await clients.forget("one")


@pytest.mark.parametrize(
    "config, settings, reason",
    [
        pytest.param(b"", {}, "Embedded", id="an embedded hub has none"),
        pytest.param(b"{", {}, "BadKubeconfig", id="not YAML"),
        pytest.param(kubeconfig("ftp://x"), {}, "BadKubeconfig", id="no server"),
        pytest.param(
            kubeconfig("https://a.example"), {"kube.context": "x"}, "BadKubeconfig", id="no context"
        ),
        pytest.param(
            kubeconfig(
                "https://a.example",
                user={"exec": {"command": "id", "apiVersion": "client.authentication.k8s.io/v1"}},
            ),
            {},
            "BadKubeconfig",
            id="a program is never run",
        ),
        pytest.param(
            kubeconfig("https://a.example", user={"tokenFile": "/etc/hostname"}),
            {},
            "BadKubeconfig",
            id="a file is never read: token",
        ),
        pytest.param(
            kubeconfig("https://a.example", cluster={"certificate-authority": "/etc/hostname"}),
            {},
            "BadKubeconfig",
            id="a file is never read: authority",
        ),
    ],
)
async def test_a_client_that_cannot_be_made_says_why(
    config: bytes, settings: dict[str, str], reason: str
) -> None:
    clients = HubClients()

    with pytest.raises(Unavailable) as raised:
        await clients.client(a_hub(config, settings=settings))

    assert raised.value.reason == reason
    assert SECRET not in repr(raised.value) + repr(raised.value.__cause__)


async def test_bad_credentials_leave_the_client_before_them_alone() -> None:
    clients = HubClients()
    good = await clients.client(a_hub(kubeconfig("https://a.example")))

    with pytest.raises(Unavailable):
        await clients.client(a_hub(b"{", generation=2))

    assert not good.closed.is_set()
    await clients.close()


async def test_a_dead_hub_is_asked_seldom_and_costs_the_others_nothing() -> None:
    clients = HubClients()
    async with scripted_kube() as well:
        well.tell(*[Says(thing("a", 1))] * 50)
        dead = a_hub(kubeconfig("http://127.0.0.1:1"), id="dead")
        alive = a_hub(kubeconfig(well.url), id="alive")
        refused = 0
        for _ in range(50):
            try:
                await (await clients.client(dead)).get(CONFIG_MAPS, "a", "ns")
            except Unavailable as error:
                refused += error.reason == FAILING_REASON
            await (await clients.client(alive)).get(CONFIG_MAPS, "a", "ns")
        await clients.close()

    assert refused >= 40
    assert len(well.asked) == 50
