"""The heart of the player: what is seen of a cluster, now → what to write, and when to look again. Pure.

Called once per change of anything that belongs to a cluster, and at the moments it asked for. It remembers nothing:
killed and called again it goes on from what is written on the objects.
"""

from __future__ import annotations

from boatyard.fakes.hypershift.control_plane import play_control_plane
from boatyard.fakes.hypershift.node_pools import play_pool
from boatyard.fakes.hypershift.objects import deleted_at, name_of
from boatyard.fakes.hypershift.observation import Manner, Seen
from boatyard.fakes.hypershift.teardown import play_teardown
from boatyard.fakes.hypershift.writes import Decision, earliest


def decide(seen: Seen, manner: Manner, now: float) -> Decision:
    parts = []
    if seen.cluster is not None:
        leaving = deleted_at(seen.cluster) is not None
        play = play_teardown if leaving else play_control_plane
        parts.append(play(seen, manner, now))
    taken: set[str] = set()
    for pool in sorted(seen.pools, key=name_of):
        parts.append(play_pool(seen, pool, taken, manner, now))
    return Decision(
        writes=tuple(write for part in parts for write in part.writes),
        look_at=earliest(*(part.look_at for part in parts)),
        wants_agents=any(part.wants_agents for part in parts),
    )
