"""Asking a real, whole cluster the questions of the checks, and words for its faults."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from boatyard.checks.drivers.kube import KubeChecks
from boatyard.checks.drivers.kube.check_context import CheckSettings
from boatyard.checks.port import Subject
from boatyard.kube.client import KubeClient
from boatyard.kube.config import read_kubeconfig
from boatyard.kube.kinds import JOBS, NODES, PODS
from boatyard.model.errors import Unavailable
from boatyard.model.outcome import Done, Outcome, Waiting
from tests.support.control_plane import ControlPlane

SLOTS = ("compute-0", "compute-1")
NAMES = {"api.one.example": "192.0.2.1", "*.apps.one.example": "192.0.2.2"}


def subject_of(plane: ControlPlane, kubeconfig: dict[str, Any] | None = None) -> Subject:
    (api, api_address), (ingress, ingress_address) = NAMES.items()
    return Subject(
        cluster_key="order-1/cluster",
        api_name=api,
        api_address=api_address,
        ingress_name=ingress,
        ingress_address=ingress_address,
        slots=SLOTS,
        version=plane.version,
        kubeconfig=json.dumps(kubeconfig or plane.kubeconfig()),
        resolve=resolve,
    )


async def resolve(name: str) -> str | None:
    return NAMES.get(name)


async def ask(name: str, subject: Subject, **manner: Any) -> Outcome:
    return await KubeChecks(CheckSettings(**manner)).run_check(name, subject)


async def reason(name: str, subject: Subject) -> str:
    """Why the answer is no."""
    outcome = await ask(name, subject)
    assert isinstance(outcome, Waiting), outcome
    assert outcome.why
    return outcome.reason


async def ask_until_done(name: str, subject: Subject) -> None:
    await _ask_until(name, subject, lambda outcome: isinstance(outcome, Done), "yes")


async def ask_until(name: str, subject: Subject, said: str) -> Waiting:
    """Asks until the answer is no for this reason; before that it may be no for another, but never yes."""

    def is_so(outcome: Outcome) -> bool:
        assert isinstance(outcome, Waiting), outcome
        return outcome.reason == said

    outcome = await _ask_until(name, subject, is_so, said)
    assert isinstance(outcome, Waiting)
    return outcome


async def _ask_until(
    name: str, subject: Subject, is_so: Callable[[Outcome], bool], said: str
) -> Outcome:
    loop = asyncio.get_running_loop()
    end = loop.time() + 60
    last: object = None
    while loop.time() < end:
        try:
            last = outcome = await ask(name, subject)
        except Unavailable as error:
            last = error
            continue
        if is_so(outcome):
            return outcome
    raise AssertionError(f"{said} expected, not {last}: {await described(subject)}")


async def described(subject: Subject) -> str:
    """What a person would look at first."""
    client = KubeClient(read_kubeconfig(subject.kubeconfig))
    lines: list[str] = []
    for kind in (NODES, JOBS, PODS):
        for item in (await client.list(kind)).items:
            about = {name: item["metadata"].get(name) for name in ("name", "deletionTimestamp")}
            lines.append(f"{kind.kind} {about} {item['spec']} {item.get('status')}")
    await client.close()
    return "\n".join(lines)


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(90):
        while True:
            if await holds():
                return
            await asyncio.sleep(0.05)


async def things_left(client: KubeClient) -> list[str]:
    found = [*(await client.list(JOBS)).items, *(await client.list(PODS)).items]
    return [item["metadata"]["name"] for item in found]


async def nothing_left(client: KubeClient) -> bool:
    return await things_left(client) == []
