"""Adds and removes nodes of a cluster through slots of a node pool, machines and agents. Called by the driver.

HyperShift only knows how many machines a pool has. Before that number falls, the machine of the leaving slot is
marked to be deleted first. When HyperShift deletes another one all the same, this module corrects it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from boatyard.model import hub_names
from boatyard.model.errors import Conflict, Refused, Unavailable
from boatyard.model.outcome import Done, Outcome, Waiting
from boatyard.platforms.drivers.hosted import agents, cluster_manifests, hypershift_status, slots
from boatyard.platforms.drivers.hosted.cluster_manifests import ClusterLocation, RenderedObject
from boatyard.platforms.drivers.hosted.hub_api import HubApi
from boatyard.platforms.drivers.hosted.kinds import (
    DELETE_FIRST_ANNOTATION,
    NO_DRAIN_ANNOTATION,
    NODE_POOLS,
    Manifest,
    ObservedObject,
    get_path,
    is_being_deleted,
    name_of,
    namespace_of,
)
from boatyard.platforms.drivers.hosted.machines import (
    PoolMachine,
    exclude_leaving,
    select_pool_machines,
)
from boatyard.platforms.drivers.hosted.settings import AGENT, HostedSettings, resolve_settings
from boatyard.platforms.drivers.hosted.slots import PoolUpdate, Slot
from boatyard.platforms.drivers.hosted.validation import check_pool
from boatyard.platforms.port import DesiredNode

LOOK_AGAIN = 3.0
NODES_MANAGER = (
    "boatyard-nodes"  # field manager of a pool's node count; the driver's own has the other fields
)
_MAX_ATTEMPTS = 5  # of a write that conflicts with somebody else's


def platform_of(cluster: ObservedObject) -> str:
    return str(get_path(cluster, "spec", "platform", "type") or "")


def read_cluster_settings(hub: HubApi, cluster: ObservedObject) -> HostedSettings:
    """Returns how the cluster is hosted, from the settings stored in its annotation."""
    template, immutable = cluster_manifests.read_stored_settings(cluster)
    if (
        immutable is None
    ):  # the annotation was removed by hand; the spec still has the platform, which must not be guessed
        template = {**template, "hosted.platform": platform_of(cluster)}
    return resolve_settings(template, hub.settings, immutable)


# --- joining -----------------------------------------------------------------------------------


async def ensure_pool(
    hub: HubApi,
    location: ClusterLocation,
    cluster: Manifest,
    pools: Sequence[Manifest],
    node: DesiredNode,
) -> Manifest:
    """Returns the pool of a node set. Creates it when it is missing, with the release of its cluster."""
    name = hub_names.node_pool_name(location.order, node.node_set)
    for pool in pools:
        if name_of(pool) == name:
            cluster_manifests.refuse_other_owner(location, NODE_POOLS, pool)
            if is_being_deleted(pool):
                raise Unavailable("the node pool of before is still going", reason="NoPool")
            return pool
    running = hypershift_status.find_completed_release(cluster)
    image = (
        running.image
        if running is not None and running.image
        else get_path(cluster, "spec", "release", "image")
    )
    manifest = cluster_manifests.render_node_pool(
        location,
        cluster,
        read_cluster_settings(hub, cluster),
        node.node_set,
        node.host_type,
        image=str(image),
    )
    check_pool(manifest, cluster)
    return await hub.apply(RenderedObject(NODE_POOLS, manifest))


async def ensure_machine(
    hub: HubApi, location: ClusterLocation, cluster: Manifest, key: str, node: DesiredNode
) -> Outcome:
    """Makes the host a node through HyperShift; Done when it is ready."""
    pools = await hub.list_pools(location)
    slots.check_free(pools, key, node)
    agent: Manifest | None = None
    if platform_of(cluster) == AGENT:
        namespace = str(get_path(cluster, "spec", "platform", "agent", "agentNamespace"))
        candidate = await agents.find(hub, namespace, node.host)
        if isinstance(candidate, Waiting):
            return candidate
        agents.check_free(candidate, key, location)
        agent = candidate
    pool = await ensure_pool(hub, location, cluster, pools, node)
    agent_ref = f"{namespace_of(agent)}/{name_of(agent)}" if agent is not None else ""
    slot = Slot(node.slot, node.node_set, key, node.host, node.address, agent_ref)
    # Recorded before the host is claimed, so that a later release finds the host here.
    pool = await record_slot(hub, pool, slot)
    if slots.read_slots(pool)[node.slot].leaving:
        return Waiting("The node of before is still leaving.", LOOK_AGAIN, "Leaving")
    if agent is not None:
        await agents.claim(hub, agent, key, location, name_of(pool), node)
    return await _check_joined(hub, location, pool, slot)


async def record_slot(hub: HubApi, pool: Manifest, slot: Slot, *, counted: bool = True) -> Manifest:
    """Writes the slot into its pool. A slot that is leaving stays so."""

    def change(current: Manifest) -> PoolUpdate:
        slots.check_free([current], slot.key, DesiredNode(slot.slot, slot.node_set, slot.host, ""))
        existing = slots.read_slots(current).get(slot.slot)
        if existing is not None and existing.leaving:
            return PoolUpdate(slots.read_slots(current), slots.replicas_of(current))
        return slots.with_slot(current, slot, counted=counted)

    return await update_pool(hub, pool, change)


async def update_pool(
    hub: HubApi, pool: Manifest, change: Callable[[Manifest], PoolUpdate]
) -> Manifest:
    """Changes the slots of a pool. After a conflict it reads the pool again and applies `change` to that."""
    # One at a time within this process: a pool has many nodes, and all of them join at once.
    async with hub.get_lock(f"{namespace_of(pool)}/{name_of(pool)}"):
        for _ in range(_MAX_ATTEMPTS):
            book = change(pool)
            if book == PoolUpdate(slots.read_slots(pool), slots.replicas_of(pool)):
                return pool
            body = slots.render_slots(pool, book.slots.values(), book.replicas)
            try:
                return await hub.client.apply(
                    NODE_POOLS,
                    name_of(pool),
                    body,
                    namespace_of(pool),
                    strict=True,
                    manager=NODES_MANAGER,
                )
            except Conflict:
                pool = await _read_again(hub, pool)
    raise Unavailable("the node pool is being changed by others", reason="Busy")


async def _read_again(hub: HubApi, pool: Manifest) -> Manifest:
    current = await hub.get(NODE_POOLS, name_of(pool), namespace_of(pool))
    if current is None:
        raise Unavailable("the node pool has gone meanwhile", reason="NoPool")
    return current


async def _check_joined(
    hub: HubApi, location: ClusterLocation, pool: Manifest, slot: Slot
) -> Outcome:
    hypershift_status.check_pool_not_blocked(pool)
    machines = await hub.list_machines(location)
    machine = slots.match_machines(pool, machines, agents=bool(slot.agent)).get(slot.slot)
    if machine is None:
        return Waiting("A machine is being made for the node.", LOOK_AGAIN, "WorkersJoining")
    if not slot.agent and (machine.slot, machine.key) != (slot.slot, slot.key):
        await _annotate_machine(hub, machine, {hub_names.SLOT: slot.slot, hub_names.KEY: slot.key})
    if machine.leaving:
        return Waiting("The node's machine is being replaced.", LOOK_AGAIN, "WorkersJoining")
    if not machine.ready:
        return Waiting("The node is joining.", LOOK_AGAIN, "WorkersJoining")
    return Done()


async def _annotate_machine(
    hub: HubApi, machine: PoolMachine, annotations: dict[str, str | None]
) -> None:
    """Annotates a machine. Conflict when it has changed since it was read."""
    kind = await hub.get_machines_kind()
    metadata = {"annotations": annotations, "resourceVersion": machine.resource_version}
    await hub.client.merge_patch(
        kind, machine.name, {"metadata": metadata}, machine.namespace, strict=True
    )


# --- leaving -----------------------------------------------------------------------------------


async def release_machine(
    hub: HubApi, location: ClusterLocation, cluster: Manifest, key: str, name: str, *, drain: bool
) -> Outcome:
    """Does the next part of removing a node. Done when the cluster has neither its machine nor its host."""
    pool_and_slot = slots.find_slot(await hub.list_pools(location), name)
    if pool_and_slot is None:
        return await release_agents(hub, key)
    pool, slot = pool_and_slot
    if slot.key != key:
        raise Refused(f"node {name} is in use under another key", reason="HeldByAnother")
    if is_being_deleted(pool):
        return Waiting("The nodes are being removed.", LOOK_AGAIN, "RemovingNodes")
    if not slot.leaving:
        return await _start_leaving(hub, location, pool, slot, drain=drain)
    machines = select_pool_machines(await hub.list_machines(location), name_of(pool))
    if platform_of(cluster) == AGENT:
        waiting = await _finish_agent(hub, pool, slot, machines)
    else:
        waiting = await _finish_virtual(hub, pool, slot, machines)
    if waiting is not None:
        return waiting
    await remove_slot(hub, pool, name)
    return Done()


async def _start_leaving(
    hub: HubApi, location: ClusterLocation, pool: Manifest, slot: Slot, *, drain: bool
) -> Outcome:
    """Marks the machine to be deleted first, then lowers the pool's number of machines."""
    slot_agents = await hub.list_agents_of(slot.key, slot.agent) if slot.agent else []
    for agent in slot_agents:
        if agents.is_ours(agent, slot.key):
            await agents.remove_join_label(hub, agent)
    machines = await hub.list_machines(location)
    machine = slots.match_machines(pool, machines, agents=bool(slot.agent)).get(slot.slot)
    machine = machine or _idle(select_pool_machines(machines, name_of(pool)))
    if machine is not None and not machine.leaving:
        marks: dict[str, str | None] = {DELETE_FIRST_ANNOTATION: "true"}
        if not slot.agent:
            marks |= {hub_names.SLOT: slot.slot, hub_names.KEY: slot.key}
        if not drain:
            marks[NO_DRAIN_ANNOTATION] = "true"
        if not marks.items() <= machine.annotations.items():
            await _annotate_machine(hub, machine, marks)
    await update_pool(hub, pool, lambda current: slots.with_leaving(current, slot.slot))
    return Waiting("The node is being drained and removed.", 1.0, "Leaving")


def _idle(machines: Sequence[PoolMachine]) -> PoolMachine | None:
    """Returns a machine that is no node yet: it may be deleted in place of one that was never created."""
    idle = [
        machine
        for machine in machines
        if not (
            machine.leaving or machine.delete_first or machine.node or machine.agent or machine.slot
        )
    ]
    return idle[-1] if idle else None


async def _finish_agent(
    hub: HubApi, pool: Manifest, slot: Slot, machines: Sequence[PoolMachine]
) -> Waiting | None:
    leaving = Waiting("The node is being drained and removed.", LOOK_AGAIN, "Leaving")
    for machine in (candidate for candidate in machines if candidate.agent == slot.agent_name):
        if not machine.leaving and len(exclude_leaving(machines)) <= slots.replicas_of(pool):
            # HyperShift has deleted another machine and will delete no more. This one is deleted here; the
            # machine that replaces it takes the host that became free, because that host may still join.
            await hub.client.delete(
                await hub.get_machines_kind(), machine.name, machine.namespace, uid=machine.uid
            )
        return leaving
    outcome = await release_agents(hub, slot.key, slot.agent)
    return outcome if isinstance(outcome, Waiting) else None


async def _finish_virtual(
    hub: HubApi, pool: Manifest, slot: Slot, machines: Sequence[PoolMachine]
) -> Waiting | None:
    for machine in (candidate for candidate in machines if candidate.slot == slot.slot):
        if machine.leaving or len(exclude_leaving(machines)) > slots.replicas_of(pool):
            return Waiting("The node is being drained and removed.", LOOK_AGAIN, "Leaving")
        # HyperShift has deleted another machine. All are alike: this one is given to the slot that lost its own.
        heir = _find_slot_without_machine(pool, machines)
        await _annotate_machine(
            hub,
            machine,
            {
                DELETE_FIRST_ANNOTATION: None,
                NO_DRAIN_ANNOTATION: None,
                hub_names.SLOT: heir.slot if heir else None,
                hub_names.KEY: heir.key if heir else None,
            },
        )
    return None


def _find_slot_without_machine(
    pool: ObservedObject, machines: Sequence[PoolMachine]
) -> Slot | None:
    occupied = {machine.slot for machine in exclude_leaving(machines)}
    for slot in slots.read_slots(pool).values():
        if not slot.leaving and slot.slot not in occupied:
            return slot
    return None


async def release_agents(hub: HubApi, key: str, agent_ref: str = "") -> Outcome:
    """Releases every host that carries this node's key. Done when there is none."""
    waiting: Waiting | None = None
    for agent in await hub.list_agents_of(key, agent_ref):
        waiting = await agents.release_agent(hub, agent, key) or waiting
    return waiting or Done()


async def remove_slot(hub: HubApi, pool: Manifest, name: str) -> None:
    """Removes the slot from its pool."""
    await update_pool(hub, pool, lambda current: slots.without_slot(current, name))
