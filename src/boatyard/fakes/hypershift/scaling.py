"""Scales a pool's machines: creation, deletion, new versions, repair, agents. Pure; called by `node_pools`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from boatyard.fakes.hypershift.agents import bind_agent, is_free
from boatyard.fakes.hypershift.faults import PlantedFaults
from boatyard.fakes.hypershift.kinds import MACHINES
from boatyard.fakes.hypershift.machines import (
    begin_update,
    create_machine,
    end_update,
    find_agents,
    is_healthy,
)
from boatyard.fakes.hypershift.names import (
    DELETE_MACHINE,
    LAST_MACHINE_NUMBER,
    UPDATING_SINCE,
    Object,
)
from boatyard.fakes.hypershift.objects import (
    annotations_of,
    conditions_of,
    deleted_at,
    find_condition,
    get_nested,
    labels_of,
    name_of,
    namespace_of,
    parse_time,
    spec_of,
    status_of,
    uid_of,
)
from boatyard.fakes.hypershift.snapshot import (
    FakeSettings,
    HostedClusterSnapshot,
    agent_namespace,
    machine_number,
)
from boatyard.fakes.hypershift.writes import DeleteObject, Write, earliest

MAX_REPAIRED = (
    2  # with more unhealthy nodes than this something else is wrong, and none is replaced
)


def desired_machine_count(pool: Object, alive: Sequence[Object]) -> int:
    """How many machines a pool should have: its replicas; with autoscaling the current number, within the bounds."""
    scaling = spec_of(pool).get("autoScaling")
    if scaling:
        return int(min(max(len(alive), scaling.get("min") or 0), scaling.get("max") or 0))
    return int(spec_of(pool).get("replicas") or 0)


def scale_pool(
    snapshot: HostedClusterSnapshot, pool: Object, version: str, settings: FakeSettings, now: float
) -> tuple[list[Write], float | None]:
    """Writes that bring the machines to their number and version, and when to check again."""
    alive = [machine for machine in snapshot.machines_of(pool) if deleted_at(machine) is None]
    desired_count = desired_machine_count(pool, alive)
    faults = settings.find_faults("NodePool", pool)
    old = [machine for machine in alive if spec_of(machine).get("version") != version]
    if get_nested(pool, "spec", "management", "upgradeType") == "InPlace":
        changes, next_check = _update_in_place(pool, old, version, settings, now)
        return [
            *_scale_to_count(snapshot, pool, alive, desired_count, version, faults),
            *changes,
        ], next_check
    if not old or get_nested(pool, "spec", "management", "replace", "strategy") == "OnDelete":
        return _scale_to_count(snapshot, pool, alive, desired_count, version, faults), None
    return _replace_old_machines(snapshot, pool, alive, old, desired_count, version), None


def _scale_to_count(
    snapshot: HostedClusterSnapshot,
    pool: Object,
    alive: Sequence[Object],
    desired_count: int,
    version: str,
    faults: PlantedFaults,
) -> list[Write]:
    if len(alive) < desired_count:
        return _create_machines(snapshot, pool, desired_count - len(alive), version)
    return [
        DeleteObject(MACHINES, machine)
        for machine in choose_machines_to_delete(alive, len(alive) - desired_count, faults)
    ]


def choose_machines_to_delete(
    alive: Sequence[Object], count: int, faults: PlantedFaults
) -> list[Object]:
    """The machines to delete: those annotated for deletion, then those without a healthy node, then the newest."""
    others = sorted(
        (machine for machine in alive if DELETE_MACHINE not in annotations_of(machine)),
        key=lambda machine: (is_healthy(machine), -machine_number(machine)),
    )
    named = sorted(
        (machine for machine in alive if DELETE_MACHINE in annotations_of(machine)),
        key=lambda machine: -machine_number(machine),
    )
    if "wrong-machine" in faults and others:
        return [*reversed(others), *named][:count]
    return [*named, *others][:count]


def _create_machines(
    snapshot: HostedClusterSnapshot, pool: Object, count: int, version: str
) -> list[Write]:
    numbers = [machine_number(machine) for machine in snapshot.machines_of(pool)]
    last_number = annotations_of(pool).get(LAST_MACHINE_NUMBER, "")
    highest = max([int(last_number) if last_number.isdecimal() else 0, *numbers])
    return [
        create_machine(snapshot, pool, highest + 1 + offset, version) for offset in range(count)
    ]


def _replace_old_machines(
    snapshot: HostedClusterSnapshot,
    pool: Object,
    alive: Sequence[Object],
    old: Sequence[Object],
    desired_count: int,
    version: str,
) -> list[Write]:
    """A rolling replacement within maxSurge and maxUnavailable; if both are 0, one machine may be unavailable."""
    rolling = get_nested(pool, "spec", "management", "replace", "rollingUpdate") or {}
    max_surge = _resolve_share(rolling.get("maxSurge", 1), desired_count, round_up=True)
    max_unavailable = _resolve_share(
        rolling.get("maxUnavailable", 0), desired_count, round_up=False
    )
    if not max_surge and not max_unavailable:
        max_unavailable = 1  # else it would never move
    new = len(alive) - len(old)
    room = desired_count + max_surge - len(alive)
    writes: list[Write] = _create_machines(
        snapshot, pool, max(0, min(desired_count - new, room)), version
    )
    spare = sum(is_healthy(machine) for machine in alive) - (desired_count - max_unavailable)
    for machine in sorted(old, key=lambda machine: (is_healthy(machine), machine_number(machine))):
        if not is_healthy(machine):
            writes.append(DeleteObject(MACHINES, machine))
        elif spare > 0:
            writes.append(DeleteObject(MACHINES, machine))
            spare -= 1
    return writes


def _update_in_place(
    pool: Object, old: Sequence[Object], version: str, settings: FakeSettings, now: float
) -> tuple[list[Write], float | None]:
    """Updates machines in place, at most maxUnavailable at once."""
    max_unavailable = get_nested(pool, "spec", "management", "inPlace", "maxUnavailable")
    max_unavailable = max(
        1,
        _resolve_share(
            max_unavailable if max_unavailable is not None else 1, len(old), round_up=False
        ),
    )
    slow = settings.find_faults("NodePool", pool).extra_seconds
    writes: list[Write] = []
    moments: list[float] = []
    under_way = [machine for machine in old if UPDATING_SINCE in annotations_of(machine)]
    for machine in under_way:
        since = parse_time(annotations_of(machine)[UPDATING_SINCE]) or 0.0
        due = since + settings.delays.seconds_for("update", uid_of(machine)) + slow
        if now >= due:
            writes.append(end_update(machine, version))
        else:
            moments.append(due)
    waiting = sorted((machine for machine in old if machine not in under_way), key=machine_number)
    for machine in waiting[: max(0, max_unavailable - len(under_way))]:
        writes.append(begin_update(machine, now))
    return writes, earliest(*moments)


def _resolve_share(value: Any, whole: int, *, round_up: bool) -> int:
    """A number, or a percentage of the whole; 0 when the value is neither."""
    text = str(value)
    if text.removesuffix("%").isdecimal() and text.endswith("%"):
        parts = whole * int(text.removesuffix("%"))
        return -(-parts // 100) if round_up else parts // 100
    return int(text) if text.isdecimal() else 0


def repair_machines(
    pool: Object, machines: Sequence[Object], settings: FakeSettings, now: float
) -> tuple[list[Write], float | None]:
    """Deletes machines whose nodes are unhealthy for too long, if the pool has autoRepair."""
    if not get_nested(pool, "spec", "management", "autoRepair"):
        return [], None
    unhealthy = []
    for machine in machines:
        condition = find_condition(conditions_of(machine), "NodeHealthy") or {}
        joined = get_nested(status_of(machine), "nodeRef", "name")
        if deleted_at(machine) is None and joined and condition.get("status") == "False":
            since = parse_time(condition.get("lastTransitionTime")) or now
            unhealthy.append(
                (machine, since + settings.delays.seconds_for("repair", uid_of(machine)))
            )
    if len(unhealthy) > MAX_REPAIRED:
        return [], None
    later = [due for _, due in unhealthy if due > now]
    return [DeleteObject(MACHINES, machine) for machine, due in unhealthy if due <= now], earliest(
        *later
    )


def bind_free_agents(
    snapshot: HostedClusterSnapshot, pool: Object, used_agents: set[str]
) -> tuple[list[Write], set[str], bool]:
    """Binds free agents to machines without one. Also returns those machines' uids, and whether one has none yet."""
    assert snapshot.cluster is not None
    selector = get_nested(pool, "spec", "platform", "agent", "agentLabelSelector")
    home, deployment = snapshot.home_namespace, name_of(snapshot.cluster)
    free = [
        agent
        for agent in sorted(snapshot.agents, key=name_of)
        if is_free(agent)
        and namespace_of(agent) == agent_namespace(snapshot.cluster)
        and uid_of(agent) not in used_agents
        and matches_selector(selector, labels_of(agent))
    ]
    writes: list[Write] = []
    bound_machines: set[str] = set()
    for machine in snapshot.machines_of(pool):
        done = deleted_at(machine) is not None or spec_of(machine).get("providerID")
        if done or find_agents(machine, snapshot):
            continue
        if not free:
            return writes, bound_machines, True
        agent = free.pop(0)
        used_agents.add(uid_of(agent))
        bound_machines.add(uid_of(machine))
        writes.append(bind_agent(agent, machine, home, deployment))
    return writes, bound_machines, False


def matches_selector(selector: Object | None, labels: dict[str, str]) -> bool:
    """Whether a label selector matches; a missing one matches everything."""
    for key, value in (get_nested(selector, "matchLabels") or {}).items():
        if labels.get(key) != value:
            return False
    for expression in get_nested(selector, "matchExpressions") or []:
        key, values = expression.get("key"), expression.get("values") or []
        results = {
            "In": labels.get(key) in values,
            "NotIn": key not in labels or labels[key] not in values,
            "Exists": key in labels,
            "DoesNotExist": key not in labels,
        }
        if not results.get(expression.get("operator"), False):
            return False
    return True
