"""The upgrade question: clusters ordered with older content scale and delete after newer content is published."""

from __future__ import annotations

from boatyard.model.errors import BoatyardError
from boatyard.model.generated.osac import Cluster
from boatyard.roles.role import TemplateRole, read_role
from boatyard.template_test.environment import StuckCluster
from boatyard.template_test.form_values import ValueGenerator
from boatyard.template_test.questions import SEE_BOUNDS, check_deleted
from boatyard.template_test.report import QuestionResult
from boatyard.template_test.trial import (
    MAXIMAL_CLUSTER,
    RoleTrial,
    failed_result,
    passed_result,
    skipped_result,
)

_OLD, _NEW = "ordered-before", "ordered-after"
_REMEDY = (
    "a cluster keeps the content it was ordered with: publish other content under the same id only "
    "when both can live side by side"
)


async def check_upgrade(trial: RoleTrial) -> QuestionResult:
    older = trial.options.older
    if older is None:
        return skipped_result("upgrade", trial.options.no_older)
    # Under the name of the newer content: it is the same role at an earlier time.
    old_role = read_role(trial.role_files.name, older.files)
    if not isinstance(old_role, TemplateRole):
        return failed_result("upgrade", "the older content has mistakes", older.mistakes, _REMEDY)
    if old_role.metadata.id != trial.template:
        problems = [f"its template was {old_role.metadata.id!r} and is {trial.template!r}"]
        return failed_result("upgrade", "it has another id now", problems, "keep the id")
    if old_role.digest == trial.role.digest:
        return skipped_result("upgrade", "the older content is the same")
    try:
        problems = await _run_side_by_side(trial, old_role)
    except BoatyardError as error:
        problems = [str(error)]
    if trial.list_overruns(_OLD) or trial.list_overruns(_NEW):
        return skipped_result("upgrade", SEE_BOUNDS)
    if problems:
        return failed_result("upgrade", "old and new cannot live side by side", problems, _REMEDY)
    return passed_result(
        "upgrade", f"a cluster of {short_digest(old_role.digest)} scaled and went beside a new one"
    )


async def _run_side_by_side(trial: RoleTrial, old_role: TemplateRole) -> list[str]:
    yard, name = trial.environment, trial.role_files.name
    values = (
        ValueGenerator(old_role.form, trial.random, _pinned_values(trial, old_role)).make_maximal()
        or {}
    )
    trial.values[_OLD] = values
    older = trial.options.older
    assert older is not None
    await yard.publish(name, older.files)
    try:
        trial.external_state_before[_OLD] = await trial.external_command.read_state(_OLD)
        trial.ids[_OLD] = await yard.order(_OLD, old_role.metadata.id, old_role.form, values)
        old_end = await yard.wait_until_ready(trial.ids[_OLD])
    finally:
        await yard.publish(name, trial.role_files.files)
    if isinstance(old_end, StuckCluster):
        return [f"with the older content: {old_end.reason}"]
    problems: list[str] = []
    node_set, default_set = min(old_role.metadata.node_sets.items())
    await yard.client.scale_cluster(trial.ids[_OLD], {node_set: default_set.size + 1})
    old_end = await yard.wait_until_ready(trial.ids[_OLD])
    if isinstance(old_end, StuckCluster):
        problems.append(f"scaled after newer content was published: {old_end.reason}")
    trial.values.setdefault(_NEW, trial.values[MAXIMAL_CLUSTER])
    await trial.order(_NEW)
    new_end = await yard.wait_until_ready(trial.ids[_NEW])
    if isinstance(new_end, StuckCluster):
        problems.append(f"a new order beside it: {new_end.reason}")
    for id in (trial.ids[_OLD], trial.ids[_NEW]):
        await yard.client.delete_cluster(id)
    for cluster in (_OLD, _NEW):
        problems += await check_deleted(trial, cluster, trial.ids[cluster])
    for cluster, digest in ((_OLD, old_role.digest), (_NEW, trial.role.digest)):
        problems += [
            f"{run.part} of cluster {cluster!r} ran content {short_digest(run.spec.digest)}"
            for run in yard.roles.runs_of(cluster)
            if run.spec.digest != digest
        ]
    new_digest = new_end.spec.template_digest if isinstance(new_end, Cluster) else trial.role.digest
    if new_digest != trial.role.digest:
        problems.append(f"a new order got {short_digest(new_digest)}")
    return problems


def _pinned_values(trial: RoleTrial, old_role: TemplateRole) -> dict[str, object]:
    """The pinned values, as far as the older form has these options."""
    return {
        key: value for key, value in trial.options.values.items() if key in old_role.form.options
    }


def short_digest(digest: str) -> str:
    return digest.removeprefix("sha256:")[:12]
