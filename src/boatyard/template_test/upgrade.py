"""The upgrade question: clusters ordered with older content scale and delete after newer content is published."""

from __future__ import annotations

from boatyard.model.errors import BoatyardError
from boatyard.model.generated.osac import Cluster
from boatyard.roles.role import Role, read_role
from boatyard.template_test.environment import Stuck
from boatyard.template_test.form_values import Fuzz
from boatyard.template_test.questions import SEE_BOUNDS, see_gone
from boatyard.template_test.report import Answer
from boatyard.template_test.trial import MOST, Trial, failed, passed, skipped

_OLD, _NEW = "ordered-before", "ordered-after"
_REMEDY = (
    "a cluster keeps the content it was ordered with: publish other content under the same id only "
    "when both can live side by side"
)


async def ask_upgrade(trial: Trial) -> Answer:
    older = trial.options.older
    if older is None:
        return skipped("upgrade", trial.options.no_older)
    # Under the name of the newer content: it is the same role at an earlier time.
    old_role = read_role(trial.found.name, older.files)
    if not isinstance(old_role, Role):
        return failed("upgrade", "the older content has mistakes", older.mistakes, _REMEDY)
    if old_role.about.id != trial.template:
        problems = [f"its template was {old_role.about.id!r} and is {trial.template!r}"]
        return failed("upgrade", "it has another id now", problems, "keep the id")
    if old_role.digest == trial.role.digest:
        return skipped("upgrade", "the older content is the same")
    try:
        problems = await _live(trial, old_role)
    except BoatyardError as error:
        problems = [str(error)]
    if trial.overrun(_OLD) or trial.overrun(_NEW):
        return skipped("upgrade", SEE_BOUNDS)
    if problems:
        return failed("upgrade", "old and new cannot live side by side", problems, _REMEDY)
    return passed(
        "upgrade", f"a cluster of {short(old_role.digest)} scaled and went beside a new one"
    )


async def _live(trial: Trial, old_role: Role) -> list[str]:
    yard, name = trial.yard, trial.found.name
    values = Fuzz(old_role.form, trial.chance, _of(trial, old_role)).most() or {}
    trial.values[_OLD] = values
    older = trial.options.older
    assert older is not None
    await yard.publish(name, older.files)
    try:
        trial.before[_OLD] = await trial.outside.look(_OLD)
        trial.ids[_OLD] = await yard.order(_OLD, old_role.about.id, old_role.form, values)
        old_end = await yard.ready(trial.ids[_OLD])
    finally:
        await yard.publish(name, trial.found.files)
    if isinstance(old_end, Stuck):
        return [f"with the older content: {old_end.why}"]
    problems: list[str] = []
    node_set, default_set = min(old_role.about.node_sets.items())
    await yard.client.scale_cluster(trial.ids[_OLD], {node_set: default_set.size + 1})
    old_end = await yard.ready(trial.ids[_OLD])
    if isinstance(old_end, Stuck):
        problems.append(f"scaled after newer content was published: {old_end.why}")
    trial.values.setdefault(_NEW, trial.values[MOST])
    await trial.order(_NEW)
    new_end = await yard.ready(trial.ids[_NEW])
    if isinstance(new_end, Stuck):
        problems.append(f"a new order beside it: {new_end.why}")
    for id in (trial.ids[_OLD], trial.ids[_NEW]):
        await yard.client.delete_cluster(id)
    for cluster in (_OLD, _NEW):
        problems += await see_gone(trial, cluster, trial.ids[cluster])
    for cluster, digest in ((_OLD, old_role.digest), (_NEW, trial.role.digest)):
        problems += [
            f"{run.part} of cluster {cluster!r} ran content {short(run.wanted.digest)}"
            for run in yard.roles.of(cluster)
            if run.wanted.digest != digest
        ]
    new_digest = new_end.spec.template_digest if isinstance(new_end, Cluster) else trial.role.digest
    if new_digest != trial.role.digest:
        problems.append(f"a new order got {short(new_digest)}")
    return problems


def _of(trial: Trial, old_role: Role) -> dict[str, object]:
    """The pinned values, as far as the older form has these options."""
    return {
        key: value for key, value in trial.options.values.items() if key in old_role.form.options
    }


def short(digest: str) -> str:
    return digest.removeprefix("sha256:")[:12]
