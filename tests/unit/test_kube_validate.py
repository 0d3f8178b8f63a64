"""The validate step gives a check what it needs to look with, and no secret to one that does not."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from boatyard.checks.drivers.kube import KubeChecks
from boatyard.checks.drivers.sim import SimChecks
from boatyard.checks.port import Subject
from boatyard.model.errors import NotFound, Unavailable
from boatyard.model.generated.boatyard import Item, Order, OrderSpec
from boatyard.model.outcome import Done, Outcome, Waiting
from boatyard.resources.orders.steps.context import StepContext
from boatyard.resources.orders.steps.validate import ensure_check

FACTS = {
    "api-name": {"name": "api.one.example"},
    "api-address": {"address": "192.0.2.1"},
    "ingress-name": {"name": "*.apps.one.example"},
    "ingress-address": {"address": "192.0.2.2"},
}


class RecordingKubeChecks:
    """Checks that remember what they were given."""

    def __init__(self, needs_kubeconfig: bool) -> None:
        self.needs_kubeconfig = needs_kubeconfig
        self.subjects: list[Subject] = []

    async def run_check(self, name: str, subject: Subject) -> Outcome:
        self.subjects.append(subject)
        return Done()


class AccessOnlyPlatform:
    def __init__(self, kubeconfig: str) -> None:
        self.kubeconfig = kubeconfig
        self.asked = 0

    async def access(self, cluster_key: str) -> Any:
        self.asked += 1
        if not self.kubeconfig:
            raise NotFound(cluster_key)
        return SimpleNamespace(kubeconfig=self.kubeconfig)


async def resolve(name: str) -> str | None:
    return "192.0.2.1"


async def validated(checks: RecordingKubeChecks, platform: AccessOnlyPlatform) -> Outcome:
    drivers = SimpleNamespace(
        checks=checks, platform=platform, dns=SimpleNamespace(resolve=resolve)
    )
    context = StepContext(
        order=Order(id="order-1", spec=OrderSpec(version="1.36.3")),
        drivers=drivers,  # type: ignore[arg-type]
        book=None,  # type: ignore[arg-type]
        now=datetime(2026, 1, 1, tzinfo=UTC),
        items={key: Item(key=key, facts=facts) for key, facts in FACTS.items()},
    )
    return await ensure_check(context, Item(key="check-api", facts={"check": "api"}))


async def test_who_needs_a_kubeconfig_gets_it() -> None:
    checks, platform = (
        RecordingKubeChecks(needs_kubeconfig=True),
        AccessOnlyPlatform("the kubeconfig"),
    )

    assert await validated(checks, platform) == Done()

    (subject,) = checks.subjects
    assert subject.kubeconfig == "the kubeconfig"
    assert subject.resolve is not None
    assert await subject.resolve("api.one.example") == subject.api_address
    assert "the kubeconfig" not in repr(subject)


async def test_who_does_not_need_a_kubeconfig_gets_none() -> None:
    checks, platform = (
        RecordingKubeChecks(needs_kubeconfig=False),
        AccessOnlyPlatform("the kubeconfig"),
    )

    await validated(checks, platform)

    assert checks.subjects[0].kubeconfig == ""
    assert platform.asked == 0


async def test_a_cluster_nobody_is_let_into_is_waited_for() -> None:
    checks = RecordingKubeChecks(needs_kubeconfig=True)

    outcome = await validated(checks, AccessOnlyPlatform(""))

    assert isinstance(outcome, Waiting)
    assert checks.subjects == []


@pytest.mark.parametrize("driver, needs", [(KubeChecks, True), (SimChecks, False)])
def test_drivers_say_what_they_need(driver: Any, needs: bool) -> None:
    assert driver.needs_kubeconfig is needs


@pytest.mark.parametrize(
    "user",
    [
        pytest.param({"tokenFile": "/etc/passwd"}, id="a file"),
        pytest.param({"client-certificate": "a", "client-key": "b"}, id="certificate files"),
        pytest.param(
            {"exec": {"command": "sh", "apiVersion": "client.authentication.k8s.io/v1"}},
            id="a program",
        ),
    ],
)
async def test_a_clusters_kubeconfig_reaches_nothing_of_ours(user: dict[str, Any]) -> None:
    kubeconfig = {
        "current-context": "x",
        "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
        "clusters": [{"name": "x", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "x", "user": user}],
    }
    subject = Subject("key", "", "", "", "", (), "", kubeconfig=json.dumps(kubeconfig))

    with pytest.raises(Unavailable, match="this machine"):
        await KubeChecks().run_check("nodes", subject)
