"""The fake's decision: from a cluster's snapshot and the time to what to write and when to check again. Pure.

Called once per change of anything that belongs to a cluster, and at the times it asked for. It has no memory: after a
restart it goes on from what is written on the objects.
"""

from __future__ import annotations

from boatyard.fakes.hypershift.control_plane import play_control_plane
from boatyard.fakes.hypershift.node_pools import play_pool
from boatyard.fakes.hypershift.objects import deleted_at, name_of
from boatyard.fakes.hypershift.observation import Manner, Seen
from boatyard.fakes.hypershift.teardown import play_teardown
from boatyard.fakes.hypershift.writes import Decision, earliest


def decide(snapshot: Seen, settings: Manner, now: float) -> Decision:
    parts = []
    if snapshot.cluster is not None:
        deleting = deleted_at(snapshot.cluster) is not None
        play = play_teardown if deleting else play_control_plane
        parts.append(play(snapshot, settings, now))
    used_agents: set[str] = set()
    for pool in sorted(snapshot.pools, key=name_of):
        parts.append(play_pool(snapshot, pool, used_agents, settings, now))
    return Decision(
        writes=tuple(write for part in parts for write in part.writes),
        look_at=earliest(*(part.look_at for part in parts)),
        wants_agents=any(part.wants_agents for part in parts),
    )
