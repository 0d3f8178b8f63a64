"""The fake's decision: from a cluster's snapshot and the time to what to write and when to check again. Pure.

Called once per change of anything that belongs to a cluster, and at the times it asked for. It has no memory: after a
restart it goes on from what is written on the objects.
"""

from __future__ import annotations

from boatyard.fakes.hypershift.control_plane import decide_control_plane
from boatyard.fakes.hypershift.node_pools import decide_pool
from boatyard.fakes.hypershift.objects import deleted_at, name_of
from boatyard.fakes.hypershift.snapshot import FakeSettings, HostedClusterSnapshot
from boatyard.fakes.hypershift.teardown import decide_teardown
from boatyard.fakes.hypershift.writes import Decision, earliest


def decide_cluster(snapshot: HostedClusterSnapshot, settings: FakeSettings, now: float) -> Decision:
    parts = []
    if snapshot.cluster is not None:
        deleting = deleted_at(snapshot.cluster) is not None
        play = decide_teardown if deleting else decide_control_plane
        parts.append(play(snapshot, settings, now))
    used_agents: set[str] = set()
    for pool in sorted(snapshot.pools, key=name_of):
        parts.append(decide_pool(snapshot, pool, used_agents, settings, now))
    return Decision(
        writes=tuple(write for part in parts for write in part.writes),
        next_check=earliest(*(part.next_check for part in parts)),
        wants_agents=any(part.wants_agents for part in parts),
    )
