"""Reads Machines of Cluster API, in any of its versions. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from boatyard.model import hub_names
from boatyard.platforms.drivers.hosted.kinds import (
    AGENT_PROVIDER,
    DELETE_FIRST,
    NODE_POOL_OF_MACHINE,
    Seen,
    annotations_of,
    at,
    is_leaving,
    metadata,
    name_of,
    namespace_of,
    uid_of,
    version_of,
)
from boatyard.platforms.drivers.hosted.reading import conditions_of


@dataclass(frozen=True)
class Machine:
    name: str
    namespace: str
    uid: str
    resource_version: str
    pool: str  # the name of its node pool
    agent: str  # the name of its Agent; empty on other platforms and before it has one
    node: str  # the name of its node; empty until it has joined
    ready: bool
    created: str
    leaving: bool
    first_to_go: bool  # it is deleted first when its pool shrinks
    annotations: Mapping[str, str] = field(compare=False, repr=False)
    slot: str  # the slot of its node; empty on the Agent platform, where the Agent says it
    key: str


def read_machine(obj: Seen) -> Machine:
    annotations = annotations_of(obj)
    provider = str(at(obj, "spec", "providerID") or "")
    node = str(at(obj, "status", "nodeRef", "name") or "")
    healthy = conditions_of(obj).get("NodeHealthy")
    running = at(obj, "status", "phase") == "Running"
    return Machine(
        name=name_of(obj),
        namespace=namespace_of(obj),
        uid=uid_of(obj),
        resource_version=version_of(obj),
        pool=annotations.get(NODE_POOL_OF_MACHINE, "").partition("/")[2],
        agent=provider.removeprefix(AGENT_PROVIDER) if provider.startswith(AGENT_PROVIDER) else "",
        node=node,
        ready=bool(node) and (healthy.true if healthy is not None else running),
        created=str(metadata(obj).get("creationTimestamp") or ""),
        leaving=is_leaving(obj),
        first_to_go=DELETE_FIRST in annotations,
        annotations=annotations,
        slot=annotations.get(hub_names.SLOT, ""),
        key=annotations.get(hub_names.KEY, ""),
    )


def of_pool(machines: Iterable[Machine], pool: str) -> list[Machine]:
    """Returns the machines of one node pool, oldest first."""
    pool_machines = [machine for machine in machines if machine.pool == pool]
    return sorted(pool_machines, key=lambda machine: (machine.created, machine.name))


def staying(machines: Iterable[Machine]) -> list[Machine]:
    """Returns the machines that are not being deleted."""
    return [machine for machine in machines if not machine.leaving]
