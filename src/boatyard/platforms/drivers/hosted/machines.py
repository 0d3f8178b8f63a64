"""Reads Machines of Cluster API, in any of its versions. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from boatyard.model import hub_names
from boatyard.platforms.drivers.hosted.hypershift_status import conditions_of
from boatyard.platforms.drivers.hosted.kinds import (
    AGENT_PROVIDER_PREFIX,
    DELETE_FIRST_ANNOTATION,
    NODE_POOL_ANNOTATION,
    ObservedObject,
    annotations_of,
    get_path,
    is_being_deleted,
    metadata_of,
    name_of,
    namespace_of,
    resource_version_of,
    uid_of,
)


@dataclass(frozen=True)
class PoolMachine:
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
    delete_first: bool  # it is deleted first when its pool shrinks
    annotations: Mapping[str, str] = field(compare=False, repr=False)
    slot: str  # the slot of its node; empty on the Agent platform, where the Agent says it
    key: str


def read_machine(obj: ObservedObject) -> PoolMachine:
    annotations = annotations_of(obj)
    provider = str(get_path(obj, "spec", "providerID") or "")
    node = str(get_path(obj, "status", "nodeRef", "name") or "")
    healthy = conditions_of(obj).get("NodeHealthy")
    running = get_path(obj, "status", "phase") == "Running"
    return PoolMachine(
        name=name_of(obj),
        namespace=namespace_of(obj),
        uid=uid_of(obj),
        resource_version=resource_version_of(obj),
        pool=annotations.get(NODE_POOL_ANNOTATION, "").partition("/")[2],
        agent=provider.removeprefix(AGENT_PROVIDER_PREFIX)
        if provider.startswith(AGENT_PROVIDER_PREFIX)
        else "",
        node=node,
        ready=bool(node) and (healthy.is_true if healthy is not None else running),
        created=str(metadata_of(obj).get("creationTimestamp") or ""),
        leaving=is_being_deleted(obj),
        delete_first=DELETE_FIRST_ANNOTATION in annotations,
        annotations=annotations,
        slot=annotations.get(hub_names.SLOT, ""),
        key=annotations.get(hub_names.KEY, ""),
    )


def select_pool_machines(machines: Iterable[PoolMachine], pool: str) -> list[PoolMachine]:
    """Returns the machines of one node pool, oldest first."""
    pool_machines = [machine for machine in machines if machine.pool == pool]
    return sorted(pool_machines, key=lambda machine: (machine.created, machine.name))


def exclude_leaving(machines: Iterable[PoolMachine]) -> list[PoolMachine]:
    """Returns the machines that are not being deleted."""
    return [machine for machine in machines if not machine.leaving]
