"""How soon a person who follows an order sees the first task of its role, with real processes. For automation.py."""

from __future__ import annotations

import asyncio
import statistics
from datetime import UTC, datetime

from yard import Broken, Yard

from boatyard.client.client import Client
from boatyard.client.config import Target
from boatyard.model.generated.osac import (
    Cluster,
    ClusterSpec,
    ClusterState,
    ClusterTemplateReference,
    Metadata,
)
from boatyard.roles.content import RoleFileContent

TEMPLATE = b"""id: first_line
title: First line
description: Says one thing.
node_sets:
  compute: {host_type: bm-small, size: 1}
"""
SPEC = b"argument_specs: {main: {short_description: none, options: {}}}"
TASKS = b"- {name: Speak, boatyard.service.progress: {message: here}}"


async def first_line(rounds: int) -> tuple[float, float]:
    """Seconds until the line is at the client: since the order was accepted, and since its run was begun. Medians.

    The order is due as soon as it is accepted, so the first is what a person waits. Broken when no line comes.
    """
    async with Yard() as yard:
        target = Target(address=yard.addresses[0], token=yard.token())
        async with Client(target) as client:
            files = {
                "meta/template.yaml": RoleFileContent(TEMPLATE),
                "meta/argument_specs.yml": RoleFileContent(SPEC),
                "tasks/pre_install.yaml": RoleFileContent(TASKS),
            }
            await client.publish_role("first_line", files)
            # The first order finds the warm server cold.
            found = [await _one(client, number) for number in range(rounds + 1)][1:]
    accepted, begun = zip(*found, strict=True)
    return statistics.median(accepted), statistics.median(begun)


async def _one(client: Client, number: int) -> tuple[float, float]:
    cluster = Cluster(
        metadata=Metadata(name=f"first-{number}", tenant="acme"),
        spec=ClusterSpec(template=ClusterTemplateReference(id="first_line")),
    )
    created = await client.create_cluster(cluster)
    accepted = datetime.now(UTC)
    seen = await _task_seen(client, created.id)
    async with asyncio.timeout(60):
        async for explanation in client.follow(created.id, on_cut=_complain):
            if explanation.state == ClusterState.READY.name:
                break
    _, explanation = await client.explain(created.id)
    begun = next(step.started_at for step in explanation.steps if step.name == "pre_install")
    assert begun is not None
    return (seen - accepted).total_seconds(), (seen - begun).total_seconds()


async def _task_seen(client: Client, id: str) -> datetime:
    """When the first task line came. Broken when the story ends without one."""
    async for line in client.read_logs(id, run="", follow=True, on_cut=_complain):
        if not isinstance(line, int) and line.kind == "task":
            return datetime.now(UTC)
    raise Broken(f"the story of {id} ended without a task line: there is nothing to measure")


def _complain(error: Exception) -> None:
    raise error
