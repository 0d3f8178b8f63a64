"""How many machines a pool has, and which: growing, shrinking, new versions, repair. Pure; called by `node_pools`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from boatyard.fakes.hypershift.agents import bind, is_free
from boatyard.fakes.hypershift.faults import Planted
from boatyard.fakes.hypershift.kinds import MACHINES
from boatyard.fakes.hypershift.machines import (
    agents_of,
    begin_update,
    end_update,
    is_healthy,
    new_machine,
)
from boatyard.fakes.hypershift.names import (
    DELETE_MACHINE,
    LAST_NUMBER,
    UPDATING_SINCE,
    Object,
)
from boatyard.fakes.hypershift.objects import (
    annotations_of,
    conditions_of,
    deleted_at,
    find_condition,
    inside,
    labels_of,
    moment,
    name_of,
    namespace_of,
    spec_of,
    status_of,
    uid_of,
)
from boatyard.fakes.hypershift.observation import (
    Manner,
    Seen,
    agent_namespace,
    number_of,
)
from boatyard.fakes.hypershift.writes import Remove, Write, earliest

MOST_REPAIRED = (
    2  # with more unhealthy nodes than this something else is wrong, and nothing is repaired
)


def wanted_machines(pool: Object, alive: Sequence[Object]) -> int:
    """As its replicas say; with autoscaling as many as there are, within the bounds."""
    scaling = spec_of(pool).get("autoScaling")
    if scaling:
        return int(min(max(len(alive), scaling.get("min") or 0), scaling.get("max") or 0))
    return int(spec_of(pool).get("replicas") or 0)


def scale(
    seen: Seen, pool: Object, version: str, manner: Manner, now: float
) -> tuple[list[Write], float | None]:
    """What brings the machines to their number and version."""
    alive = [one for one in seen.machines_of(pool) if deleted_at(one) is None]
    want = wanted_machines(pool, alive)
    planted = manner.faults("NodePool", pool)
    old = [one for one in alive if spec_of(one).get("version") != version]
    if inside(pool, "spec", "management", "upgradeType") == "InPlace":
        changes, look_at = _update_in_place(pool, old, version, manner, now)
        return [*_to_number(seen, pool, alive, want, version, planted), *changes], look_at
    if not old or inside(pool, "spec", "management", "replace", "strategy") == "OnDelete":
        return _to_number(seen, pool, alive, want, version, planted), None
    return _replace(seen, pool, alive, old, want, version), None


def _to_number(
    seen: Seen,
    pool: Object,
    alive: Sequence[Object],
    want: int,
    version: str,
    planted: Planted,
) -> list[Write]:
    if len(alive) < want:
        return _make(seen, pool, want - len(alive), version)
    return [Remove(MACHINES, one) for one in choose_leaving(alive, len(alive) - want, planted)]


def choose_leaving(alive: Sequence[Object], count: int, planted: Planted) -> list[Object]:
    """Who leaves: those that were named, then those that are no nodes, then the newest."""
    others = sorted(
        (one for one in alive if DELETE_MACHINE not in annotations_of(one)),
        key=lambda one: (is_healthy(one), -number_of(one)),
    )
    named = sorted(
        (one for one in alive if DELETE_MACHINE in annotations_of(one)),
        key=lambda one: -number_of(one),
    )
    if "wrong-machine" in planted and others:
        return [*reversed(others), *named][:count]
    return [*named, *others][:count]


def _make(seen: Seen, pool: Object, count: int, version: str) -> list[Write]:
    numbers = [number_of(one) for one in seen.machines_of(pool)]
    told = annotations_of(pool).get(LAST_NUMBER, "")
    last = max([int(told) if told.isdecimal() else 0, *numbers])
    return [new_machine(seen, pool, last + 1 + place, version) for place in range(count)]


def _replace(
    seen: Seen,
    pool: Object,
    alive: Sequence[Object],
    old: Sequence[Object],
    want: int,
    version: str,
) -> list[Write]:
    """A rolling replacement: a few more than wanted, a few fewer than wanted, never both forgotten."""
    rolling = inside(pool, "spec", "management", "replace", "rollingUpdate") or {}
    surge = _share(rolling.get("maxSurge", 1), want, round_up=True)
    missing = _share(rolling.get("maxUnavailable", 0), want, round_up=False)
    if not surge and not missing:
        missing = 1  # else it would never move
    new = len(alive) - len(old)
    room = want + surge - len(alive)
    writes: list[Write] = _make(seen, pool, max(0, min(want - new, room)), version)
    spare = sum(is_healthy(one) for one in alive) - (want - missing)
    for machine in sorted(old, key=lambda one: (is_healthy(one), number_of(one))):
        if not is_healthy(machine):
            writes.append(Remove(MACHINES, machine))
        elif spare > 0:
            writes.append(Remove(MACHINES, machine))
            spare -= 1
    return writes


def _update_in_place(
    pool: Object, old: Sequence[Object], version: str, manner: Manner, now: float
) -> tuple[list[Write], float | None]:
    """As many at once as may be missing."""
    most = inside(pool, "spec", "management", "inPlace", "maxUnavailable")
    most = max(1, _share(most if most is not None else 1, len(old), round_up=False))
    slow = manner.faults("NodePool", pool).slowness
    writes: list[Write] = []
    moments: list[float] = []
    under_way = [one for one in old if UPDATING_SINCE in annotations_of(one)]
    for machine in under_way:
        since = moment(annotations_of(machine)[UPDATING_SINCE]) or 0.0
        due = since + manner.pace.of("update", uid_of(machine)) + slow
        if now >= due:
            writes.append(end_update(machine, version))
        else:
            moments.append(due)
    waiting = sorted((one for one in old if one not in under_way), key=number_of)
    for machine in waiting[: max(0, most - len(under_way))]:
        writes.append(begin_update(machine, now))
    return writes, earliest(*moments)


def _share(value: Any, whole: int, *, round_up: bool) -> int:
    """A number, or a share of the whole in per cent; nothing of what is neither."""
    text = str(value)
    if text.removesuffix("%").isdecimal() and text.endswith("%"):
        parts = whole * int(text.removesuffix("%"))
        return -(-parts // 100) if round_up else parts // 100
    return int(text) if text.isdecimal() else 0


def repair(
    pool: Object, machines: Sequence[Object], manner: Manner, now: float
) -> tuple[list[Write], float | None]:
    """Takes out machines whose nodes are unhealthy for too long, if the pool repairs itself."""
    if not inside(pool, "spec", "management", "autoRepair"):
        return [], None
    sick = []
    for machine in machines:
        found = find_condition(conditions_of(machine), "NodeHealthy") or {}
        joined = inside(status_of(machine), "nodeRef", "name")
        if deleted_at(machine) is None and joined and found.get("status") == "False":
            since = moment(found.get("lastTransitionTime")) or now
            sick.append((machine, since + manner.pace.of("repair", uid_of(machine))))
    if len(sick) > MOST_REPAIRED:
        return [], None
    later = [due for _, due in sick if due > now]
    return [Remove(MACHINES, machine) for machine, due in sick if due <= now], earliest(*later)


def give_agents(seen: Seen, pool: Object, taken: set[str]) -> tuple[list[Write], set[str], bool]:
    """Free agents for machines that have none, the uids of those machines, and whether one is still without."""
    assert seen.cluster is not None
    selector = inside(pool, "spec", "platform", "agent", "agentLabelSelector")
    home, deployment = seen.home, name_of(seen.cluster)
    free = [
        one
        for one in sorted(seen.agents, key=name_of)
        if is_free(one)
        and namespace_of(one) == agent_namespace(seen.cluster)
        and uid_of(one) not in taken
        and selects(selector, labels_of(one))
    ]
    writes: list[Write] = []
    served: set[str] = set()
    for machine in seen.machines_of(pool):
        done = deleted_at(machine) is not None or spec_of(machine).get("providerID")
        if done or agents_of(machine, seen):
            continue
        if not free:
            return writes, served, True
        agent = free.pop(0)
        taken.add(uid_of(agent))
        served.add(uid_of(machine))
        writes.append(bind(agent, machine, home, deployment))
    return writes, served, False


def selects(selector: Object | None, labels: dict[str, str]) -> bool:
    """Whether a label selector fits; none fits everything."""
    for key, value in (inside(selector, "matchLabels") or {}).items():
        if labels.get(key) != value:
            return False
    for one in inside(selector, "matchExpressions") or []:
        key, values = one.get("key"), one.get("values") or []
        fits = {
            "In": labels.get(key) in values,
            "NotIn": key not in labels or labels[key] not in values,
            "Exists": key in labels,
            "DoesNotExist": key not in labels,
        }
        if not fits.get(one.get("operator"), False):
            return False
    return True
