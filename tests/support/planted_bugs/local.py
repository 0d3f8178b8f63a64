"""Bugs that only the proof on real clusters can find. The first four are applied in workers, the last in keepers.

Named by `Options(plant=…)` and `Options(keeper_planted_bug=…)`; never by anything a user can type.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from boatyard.checks.drivers.kube import components, workload
from boatyard.checks.drivers.kube.check_context import CheckContext
from boatyard.checks.drivers.kube.check_job import CheckJob, run_check_job
from boatyard.kube.kinds import JOBS
from boatyard.model.errors import NotFound
from boatyard.model.outcome import Done, Outcome
from boatyard.platforms.drivers.local import process_supervisor
from boatyard.platforms.drivers.local.driver import LocalPlatform
from boatyard.platforms.port import DesiredCluster


def node_record_forgotten() -> None:
    """A node's release is answered Done; nobody tells the keeper."""

    async def hasty(self: LocalPlatform, key: str, *args: Any, **how: Any) -> Outcome:
        return Done()

    LocalPlatform.release_node = hasty  # type: ignore[method-assign]


def cluster_release_forgotten() -> None:
    """The cluster's release is answered Done; nobody tells the keeper."""

    async def hasty(self: LocalPlatform, key: str) -> Outcome:
        return Done()

    LocalPlatform.release_cluster = hasty  # type: ignore[method-assign]


def fresh_key_each_time() -> None:
    """Who does not remember that it made a cluster takes it for somebody else's, and makes another."""
    ensure_cluster = LocalPlatform.ensure_cluster
    keys: dict[str, str] = {}

    async def forgetful(self: LocalPlatform, key: str, wanted: DesiredCluster) -> Outcome:
        if key not in keys:
            is_there = (await self.observe(key)).exists
            keys[key] = f"{key}-again" if is_there else key
        return await ensure_cluster(self, keys[key], wanted)

    LocalPlatform.ensure_cluster = forgetful  # type: ignore[method-assign]


def trial_of_its_own() -> None:
    """The same of the Job that a check tries something out with: the first one is left in the tenant's cluster."""
    names: dict[str, str] = {}

    async def forgetful(asking: CheckContext, trial: CheckJob) -> Outcome:
        key = f"{asking.subject.cluster_key} {trial.name}"
        if key not in names:
            names[key] = trial.name
            try:
                await asking.client.get(JOBS, trial.name, trial.namespace)
                names[key] += "-again"
            except NotFound:
                pass
        outcome = await run_check_job(asking, dataclasses.replace(trial, name=names[key]))
        if isinstance(outcome, Done):
            del names[key]
        return outcome

    for question in (components, workload):
        question.run_check_job = forgetful  # type: ignore[attr-defined]


def keeper_without_memory() -> None:
    """A new keeper does not look for the processes of the one before it."""

    def nobody(prefix: str, users: object = None) -> Mapping[str, Any]:
        return {}

    process_supervisor.find_processes = nobody  # type: ignore[attr-defined]
