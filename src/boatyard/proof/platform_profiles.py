"""Profiles of the proof: clusters of the twin, real ones on this machine, orders on a hub, or templates with roles."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from boatyard.assets import Assets
from boatyard.assets.found import remedy
from boatyard.assets.releases import DEFAULT, release_of
from boatyard.model.errors import Refused
from boatyard.model.generated.osac import ClusterRest
from boatyard.proof import scenarios
from boatyard.proof.environment import Lane, Pace, is_gone, is_resting
from boatyard.proof.environment_setup import RealClusters
from boatyard.proof.journeys import (
    CHANGE_OF_MIND,
    CREATE,
    DELETE,
    SCALE_DOWN,
    SCALE_UP,
    Life,
    Stage,
)
from boatyard.proof.keeper_state import leave_note
from boatyard.proof.kill_points import Point
from boatyard.proof.killed_keeper import after, amid, before, killed_keeper
from boatyard.proof.role_runs import DECIDED, DECIDING, DIGEST, make_ready
from boatyard.proof.scenarios import Scenario
from boatyard.proof.tenant_requests import Wish
from boatyard.proof.verdict import KILLED_KEEPER
from boatyard.roles.phases import HOOKS
from boatyard.wiring import seed_local_catalogue

_CORES = os.cpu_count() or 1


@dataclass(frozen=True)
class Ground:
    """What is ordered, the lives of the clusters, and the limits of the proof.

    The last life is the shortest: points that several lives have are tested in that one.
    """

    wish: Wish
    lives: Sequence[Life]
    scenarios: Mapping[str, Sequence[Scenario]]
    pace: Pace
    lanes: int
    deaths: int = 1  # of workers in one stage of one life, at most
    tries: int = 3  # runs in which a point may be reached; after them it is reported as unmet
    real: RealClusters | None = None
    hub_kubeconfig: bytes = b""  # of the Kubernetes that keeps the orders; none: the ledger does

    @property
    def is_exact(self) -> bool:
        """Whether a life passes the same points the same number of times in each run."""
        return self.real is None and not self.hub_kubeconfig and not self.wish.digest

    @property
    def stages(self) -> Sequence[str]:
        return tuple(dict.fromkeys(stage.name for life in self.lives for stage in life.stages))

    @property
    def journeys(self) -> Sequence[str]:
        return (*self.stages, CHANGE_OF_MIND, *self.scenarios)

    def lives_for(self, journeys: Sequence[str], compared: Sequence[Life | None]) -> Sequence[Life]:
        """The lives that are needed for these journeys, and those that scenarios are compared with."""
        plain_stages = {stage.name for stage in self.lives[-1].stages}
        lives = []
        for life in self.lives[:-1]:
            own_stages = {stage.name for stage in life.stages} - plain_stages
            if own_stages & set(journeys) or life in compared:
                lives.append(life)
        return [*lives, self.lives[-1]]


def ground_of(
    platform: str,
    assets: Path | None = None,
    keeper_plant: str = "",
    hub_kubeconfig: bytes = b"",
    *,
    roles: bool = False,
) -> Ground:
    """The profile of a platform. Refused where the platform cannot be used on this machine."""
    if roles:
        return _with_roles()
    if hub_kubeconfig:
        return _on_hub(hub_kubeconfig)
    return _simulated() if platform == "sim" else _local(Assets(assets), keeper_plant)


def _simulated() -> Ground:
    return Ground(
        wish=Wish(template="small", version="4.17.9", nodes=2),
        lives=[Life("sizes", (CREATE, SCALE_UP, SCALE_DOWN, DELETE))],
        scenarios=scenarios.SIMULATED,
        pace=Pace(),
        lanes=min(4, 2 * _CORES),
    )


def _with_roles() -> Ground:
    """Simulated clusters whose template has a role: one with every hook, or one that decides. Ansible really runs."""
    make_ready()
    request = Wish(template="small", version="4.17.9", nodes=1, digest=DIGEST, phases=HOOKS)
    deciding_request = replace(request, digest=DECIDING, phases=DECIDED)
    # They have names of their own, because they pass other points than CREATE and DELETE do with the other role.
    decide = Stage("decide", lambda environment, id: environment.tenant.order(id, deciding_request))
    take_back = Stage("take-back", lambda environment, id: environment.tenant.delete(id), is_gone)
    return Ground(
        wish=request,
        lives=[
            Life("sizes", (CREATE, SCALE_UP, SCALE_DOWN, DELETE)),
            Life("deciding", (decide, take_back)),
            Life("plain", (CREATE, DELETE)),
        ],
        scenarios={},
        pace=Pace(look=0.05, patience=90.0, settling=20.0),
        lanes=min(4, 2 * _CORES),
        tries=2,
    )


def _on_hub(kubeconfig: bytes) -> Ground:
    """Simulated clusters whose orders a Kubernetes keeps. Service and operator die together, at any write of either."""
    return Ground(
        wish=Wish(template="small", version="4.17.9", nodes=1),
        lives=[
            Life("sizes", (CREATE, SCALE_UP, SCALE_DOWN, DELETE)),
            Life("plain", (CREATE, DELETE)),
        ],
        scenarios={},
        pace=Pace(look=0.05, patience=90.0, settling=20.0),
        lanes=min(4, 2 * _CORES),
        tries=2,
        hub_kubeconfig=kubeconfig,
    )


def _local(assets: Assets, keeper_plant: str) -> Ground:
    versions = assets.versions()
    if not versions:
        raise Refused(f"Kubernetes is not installed; run: {remedy(release_of(DEFAULT))}")
    sizes = Life("sizes", (CREATE, _noted(SCALE_UP), SCALE_DOWN, DELETE))
    upgrades = [_upgrade(versions[-1])] if len(versions) > 1 else []
    changes = [*upgrades, HIBERNATE, RESUME]
    changing = Life("changes", (CREATE, _noted(changes[0]), *changes[1:], DELETE))
    return Ground(
        wish=Wish(
            template=seed_local_catalogue.SMALL,
            version=versions[0],
            nodes=1,
            hub_labels=seed_local_catalogue.LABELS,
        ),
        lives=[sizes, changing, Life("plain", (CREATE, DELETE))],
        scenarios=_local_scenarios(sizes, changing),
        pace=Pace(look=0.1, patience=120.0, settling=30.0),
        lanes=min(4, _CORES + 1),
        deaths=2,
        tries=2,
        real=RealClusters(assets, plant=keeper_plant),
    )


def _upgrade(version: str) -> Stage:
    return Stage("upgrade", lambda environment, id: environment.tenant.upgrade(id, version))


HIBERNATE = Stage(
    "hibernate", lambda environment, id: environment.tenant.rest(id, ClusterRest.FROZEN), is_resting
)
RESUME = Stage("resume", lambda environment, id: environment.tenant.rest(id, ClusterRest.AWAKE))


def _noted(stage: Stage) -> Stage:
    """The stage, with a note that the tenant writes into the cluster before. It must exist until the end."""

    async def ask(environment: Lane, cluster_id: str) -> None:
        await leave_note(environment.keeper.directory, f"{cluster_id}/cluster")
        await stage.ask(environment, cluster_id)

    return Stage(stage.name, ask, stage.done)


def _local_scenarios(sizes: Life, changes: Life) -> Mapping[str, Sequence[Scenario]]:
    """Scenarios in several parts, which run in parallel. The first part finds most: a sample takes it alone."""
    cluster, first, second = "cluster", "node/compute-0", "node/compute-1"
    kills_by_life = [
        (
            changes,
            {
                "create": amid(f"ensure_cluster {cluster}", 0.4),
                "upgrade": amid(f"ensure_cluster {cluster}", 1.5),
                "hibernate": after(f"ensure_cluster {cluster}"),
                "resume": after(f"ensure_cluster {cluster}"),
                "delete": amid(f"release_cluster {cluster}", 0.05),
            },
        ),
        (
            changes,
            {
                "create": after(f"ensure_cluster {cluster}"),
                "upgrade": amid(f"ensure_cluster {cluster}", 0.3),
                "hibernate": amid(f"ensure_cluster {cluster}"),
                "resume": amid(f"ensure_cluster {cluster}"),
                "delete": before(f"release_cluster {cluster}"),
            },
        ),
        (
            sizes,
            {
                "create": before(f"ensure_cluster {cluster}"),
                "scale-up": before(f"ensure_node {second}"),
                "scale-down": before(f"release_node {second}"),
                "delete": before(f"release_node {first}"),
            },
        ),
        (
            sizes,
            {
                "create": amid(f"ensure_cluster {cluster}"),
                "scale-up": amid(f"ensure_node {second}"),
                "scale-down": amid(f"release_node {second}"),
                "delete": amid(f"release_cluster {cluster}"),
            },
        ),
        (
            sizes,
            {
                "create": after(f"ensure_node {first}"),
                "scale-up": after(f"ensure_node {second}"),
                "scale-down": after(f"release_node {second}"),
                "delete": after(f"release_cluster {cluster}"),
            },
        ),
    ]
    effects = (f"ensure_cluster {cluster}", f"ensure_node {first}")
    return {
        KILLED_KEEPER: [
            killed_keeper(life, kills, at_rest=("create", "resume"))
            for life, kills in kills_by_life
        ],
        "stopped-worker": [
            scenarios.stopped_worker(Point(f"after:effect:keeper.{effect}")) for effect in effects
        ],
        "late-effect": [
            scenarios.late_effect(Point(f"before:effect:keeper.{effect}")) for effect in effects
        ],
    }
