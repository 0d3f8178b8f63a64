"""Profiles of the proof: clusters of the twin, real ones on this machine, orders on a hub, or templates with roles."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from boatyard.assets import Assets
from boatyard.assets.installed_programs import format_install_command
from boatyard.assets.releases import DEFAULT_VERSION, release_of
from boatyard.model.errors import Refused
from boatyard.model.generated.osac import ClusterRest
from boatyard.proof import scenarios
from boatyard.proof.environment import ProofEnvironment, ProofTimings, is_gone, is_resting
from boatyard.proof.environment_setup import RealClusters
from boatyard.proof.journeys import (
    CHANGE_OF_MIND,
    CREATE,
    DELETE,
    SCALE_DOWN,
    SCALE_UP,
    ClusterLife,
    JourneyStage,
)
from boatyard.proof.keeper_kills import kill_after, kill_before, kill_during, make_killed_keeper
from boatyard.proof.keeper_state import write_note
from boatyard.proof.kill_points import KillPoint
from boatyard.proof.role_runs import DECIDING_DIGEST, DECIDING_PHASES, HOOKS_DIGEST, ensure_ansible
from boatyard.proof.scenarios import Scenario
from boatyard.proof.tenant_requests import ClusterRequest
from boatyard.proof.verdict import KILLED_KEEPER
from boatyard.roles.phases import HOOKS
from boatyard.wiring import seed_local_catalogue

_CORES = os.cpu_count() or 1


@dataclass(frozen=True)
class ProofProfile:
    """What is ordered, the lives of the clusters, and the limits of the proof.

    The last life is the shortest: points that several lives have are tested in that one.
    """

    request: ClusterRequest
    lives: Sequence[ClusterLife]
    scenarios: Mapping[str, Sequence[Scenario]]
    timings: ProofTimings
    environments: int
    max_kills: int = 1  # of workers in one stage of one life, at most
    max_tries: int = 3  # runs in which a point may be reached; after them it is reported as unmet
    real_clusters: RealClusters | None = None
    hub_kubeconfig: bytes = b""  # of the Kubernetes that keeps the orders; none: the ledger does

    @property
    def is_exact(self) -> bool:
        """Whether a life passes the same points the same number of times in each run."""
        return self.real_clusters is None and not self.hub_kubeconfig and not self.request.digest

    @property
    def stages(self) -> Sequence[str]:
        return tuple(dict.fromkeys(stage.name for life in self.lives for stage in life.stages))

    @property
    def journeys(self) -> Sequence[str]:
        return (*self.stages, CHANGE_OF_MIND, *self.scenarios)

    def select_lives(
        self, journeys: Sequence[str], compared: Sequence[ClusterLife | None]
    ) -> Sequence[ClusterLife]:
        """The lives that are needed for these journeys, and those that scenarios are compared with."""
        plain_stages = {stage.name for stage in self.lives[-1].stages}
        lives = []
        for life in self.lives[:-1]:
            own_stages = {stage.name for stage in life.stages} - plain_stages
            if own_stages & set(journeys) or life in compared:
                lives.append(life)
        return [*lives, self.lives[-1]]


def find_profile(
    platform: str,
    assets: Path | None = None,
    keeper_plant: str = "",
    hub_kubeconfig: bytes = b"",
    *,
    roles: bool = False,
) -> ProofProfile:
    """The profile of a platform. Refused where the platform cannot be used on this machine."""
    if roles:
        return _roles_profile()
    if hub_kubeconfig:
        return _hub_profile(hub_kubeconfig)
    return (
        _simulated_profile() if platform == "sim" else _local_profile(Assets(assets), keeper_plant)
    )


def _simulated_profile() -> ProofProfile:
    return ProofProfile(
        request=ClusterRequest(template="small", version="4.17.9", nodes=2),
        lives=[ClusterLife("sizes", (CREATE, SCALE_UP, SCALE_DOWN, DELETE))],
        scenarios=scenarios.SIMULATED_SCENARIOS,
        timings=ProofTimings(),
        environments=min(4, 2 * _CORES),
    )


def _roles_profile() -> ProofProfile:
    """Simulated clusters whose template has a role: one with every hook, or one that decides. Ansible really runs."""
    ensure_ansible()
    request = ClusterRequest(
        template="small", version="4.17.9", nodes=1, digest=HOOKS_DIGEST, phases=HOOKS
    )
    deciding_request = replace(request, digest=DECIDING_DIGEST, phases=DECIDING_PHASES)
    # They have names of their own, because they pass other points than CREATE and DELETE do with the other role.
    decide = JourneyStage(
        "decide", lambda environment, id: environment.tenant.order(id, deciding_request)
    )
    take_back = JourneyStage(
        "take-back", lambda environment, id: environment.tenant.delete(id), is_gone
    )
    return ProofProfile(
        request=request,
        lives=[
            ClusterLife("sizes", (CREATE, SCALE_UP, SCALE_DOWN, DELETE)),
            ClusterLife("deciding", (decide, take_back)),
            ClusterLife("plain", (CREATE, DELETE)),
        ],
        scenarios={},
        timings=ProofTimings(look_seconds=0.05, timeout_seconds=90.0, settle_seconds=20.0),
        environments=min(4, 2 * _CORES),
        max_tries=2,
    )


def _hub_profile(kubeconfig: bytes) -> ProofProfile:
    """Simulated clusters whose orders a Kubernetes keeps. Service and operator die together, at any write of either."""
    return ProofProfile(
        request=ClusterRequest(template="small", version="4.17.9", nodes=1),
        lives=[
            ClusterLife("sizes", (CREATE, SCALE_UP, SCALE_DOWN, DELETE)),
            ClusterLife("plain", (CREATE, DELETE)),
        ],
        scenarios={},
        timings=ProofTimings(look_seconds=0.05, timeout_seconds=90.0, settle_seconds=20.0),
        environments=min(4, 2 * _CORES),
        max_tries=2,
        hub_kubeconfig=kubeconfig,
    )


def _local_profile(assets: Assets, keeper_plant: str) -> ProofProfile:
    versions = assets.versions()
    if not versions:
        raise Refused(
            f"Kubernetes is not installed; run: {format_install_command(release_of(DEFAULT_VERSION))}"
        )
    sizes = ClusterLife("sizes", (CREATE, _with_note(SCALE_UP), SCALE_DOWN, DELETE))
    upgrades = [_upgrade_stage(versions[-1])] if len(versions) > 1 else []
    changes = [*upgrades, HIBERNATE, RESUME]
    changing = ClusterLife("changes", (CREATE, _with_note(changes[0]), *changes[1:], DELETE))
    return ProofProfile(
        request=ClusterRequest(
            template=seed_local_catalogue.SMALL_TEMPLATE,
            version=versions[0],
            nodes=1,
            hub_labels=seed_local_catalogue.HUB_LABELS,
        ),
        lives=[sizes, changing, ClusterLife("plain", (CREATE, DELETE))],
        scenarios=_local_scenarios(sizes, changing),
        timings=ProofTimings(look_seconds=0.1, timeout_seconds=120.0, settle_seconds=30.0),
        environments=min(4, _CORES + 1),
        max_kills=2,
        max_tries=2,
        real_clusters=RealClusters(assets, planted_bug=keeper_plant),
    )


def _upgrade_stage(version: str) -> JourneyStage:
    return JourneyStage("upgrade", lambda environment, id: environment.tenant.upgrade(id, version))


HIBERNATE = JourneyStage(
    "hibernate",
    lambda environment, id: environment.tenant.set_rest(id, ClusterRest.FROZEN),
    is_resting,
)
RESUME = JourneyStage(
    "resume", lambda environment, id: environment.tenant.set_rest(id, ClusterRest.AWAKE)
)


def _with_note(stage: JourneyStage) -> JourneyStage:
    """The stage, with a note that the tenant writes into the cluster before. It must exist until the end."""

    async def ask(environment: ProofEnvironment, cluster_id: str) -> None:
        await write_note(environment.keeper.directory, f"{cluster_id}/cluster")
        await stage.request(environment, cluster_id)

    return JourneyStage(stage.name, ask, stage.is_done)


def _local_scenarios(sizes: ClusterLife, changes: ClusterLife) -> Mapping[str, Sequence[Scenario]]:
    """Scenarios in several parts, which run in parallel. The first part finds most: a sample takes it alone."""
    cluster, first, second = "cluster", "node/compute-0", "node/compute-1"
    kills_by_life = [
        (
            changes,
            {
                "create": kill_during(f"ensure_cluster {cluster}", 0.4),
                "upgrade": kill_during(f"ensure_cluster {cluster}", 1.5),
                "hibernate": kill_after(f"ensure_cluster {cluster}"),
                "resume": kill_after(f"ensure_cluster {cluster}"),
                "delete": kill_during(f"release_cluster {cluster}", 0.05),
            },
        ),
        (
            changes,
            {
                "create": kill_after(f"ensure_cluster {cluster}"),
                "upgrade": kill_during(f"ensure_cluster {cluster}", 0.3),
                "hibernate": kill_during(f"ensure_cluster {cluster}"),
                "resume": kill_during(f"ensure_cluster {cluster}"),
                "delete": kill_before(f"release_cluster {cluster}"),
            },
        ),
        (
            sizes,
            {
                "create": kill_before(f"ensure_cluster {cluster}"),
                "scale-up": kill_before(f"ensure_node {second}"),
                "scale-down": kill_before(f"release_node {second}"),
                "delete": kill_before(f"release_node {first}"),
            },
        ),
        (
            sizes,
            {
                "create": kill_during(f"ensure_cluster {cluster}"),
                "scale-up": kill_during(f"ensure_node {second}"),
                "scale-down": kill_during(f"release_node {second}"),
                "delete": kill_during(f"release_cluster {cluster}"),
            },
        ),
        (
            sizes,
            {
                "create": kill_after(f"ensure_node {first}"),
                "scale-up": kill_after(f"ensure_node {second}"),
                "scale-down": kill_after(f"release_node {second}"),
                "delete": kill_after(f"release_cluster {cluster}"),
            },
        ),
    ]
    effects = (f"ensure_cluster {cluster}", f"ensure_node {first}")
    return {
        KILLED_KEEPER: [
            make_killed_keeper(life, kills, at_rest=("create", "resume"))
            for life, kills in kills_by_life
        ],
        "stopped-worker": [
            scenarios.make_stopped_worker(KillPoint(f"after:effect:keeper.{effect}"))
            for effect in effects
        ],
        "late-effect": [
            scenarios.make_late_effect(KillPoint(f"before:effect:keeper.{effect}"))
            for effect in effects
        ],
    }
