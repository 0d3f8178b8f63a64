"""Rest, versions, restores and backups as tables: what may be asked for, and why not."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from boatyard.model.caller import Caller, CallerRole
from boatyard.model.errors import Precondition, Refused
from boatyard.model.generated.boatyard import Backup, BackupSpec, BackupState, BackupStatus
from boatyard.model.generated.osac import (
    Cluster,
    ClusterNodeSet,
    ClusterRest,
    ClusterRestore,
    ClusterSpec,
    ClusterState,
    ClusterStatus,
    ClusterTemplate,
    ClusterTemplateNodeSet,
    ClusterTemplateReference,
    ClusterVersion,
    ClusterVersionReference,
    ClusterVersionSpec,
    HostTypeReference,
    Metadata,
)
from boatyard.model.outcome import Done, Outcome, Waiting
from boatyard.resources.admission_context import AdmissionContext
from boatyard.resources.backups import progress
from boatyard.resources.backups.rules import BackupRules
from boatyard.resources.cluster_templates.rules import ClusterTemplateRules
from boatyard.resources.cluster_versions.upgrades import find_change_violation, is_newer_minor
from boatyard.resources.clusters.rules import ClusterRules
from boatyard.resources.orders.attempts import AttemptFailure, AttemptFault

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ANN = Caller("ann", "acme", CallerRole.MEMBER)
AWAKE, FROZEN, STOPPED = ClusterRest.AWAKE, ClusterRest.FROZEN, ClusterRest.STOPPED
SMALL = HostTypeReference(id="small", name="small")
TEMPLATE = ClusterTemplate(
    id="ocp",
    metadata=Metadata(name="ocp", tenant="shared"),
    node_sets={"compute": ClusterTemplateNodeSet(host_type=SMALL, size=3)},
)


def a_version(number: str, **spec: Any) -> ClusterVersion:
    return ClusterVersion(
        id=f"v{number}",
        metadata=Metadata(name=f"v{number}", tenant="shared"),
        spec=ClusterVersionSpec(version=number, image="x", **spec),
    )


def a_cluster(
    rest: ClusterRest = AWAKE,
    state: ClusterState = ClusterState.READY,
    *,
    observed: int = 3,
    **spec: Any,
) -> Cluster:
    wanted: dict[str, Any] = {
        "template": ClusterTemplateReference(id="ocp"),
        "node_sets": {"compute": ClusterNodeSet(host_type=SMALL, size=3)},
        "version": ClusterVersionReference(id="v1.35.4"),
        "rest": rest,
    }
    return Cluster(
        id="c-1",
        metadata=Metadata(name="web", tenant="acme", generation=3),
        spec=ClusterSpec(**(wanted | spec)),
        status=ClusterStatus(
            state=state, observed_generation=observed, hub="hub-1", version="1.35.4"
        ),
    )


def a_world(*docs: Any, caller: Caller = ANN) -> AdmissionContext:
    known = (TEMPLATE, a_version("1.35.4"), *docs)
    return AdmissionContext(
        now=NOW, caller=caller, documents={(type(doc).__name__, doc.id): doc for doc in known}
    )


def changed(old: Cluster, **spec: Any) -> Cluster:
    return replace(old, spec=replace(old.spec, **spec))


# --- rest ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "old, wish",
    [
        pytest.param(a_cluster(), FROZEN, id="a ready one is frozen"),
        pytest.param(a_cluster(), STOPPED, id="or stopped"),
        pytest.param(a_cluster(state=ClusterState.DEGRADED), FROZEN, id="also a degraded one"),
        pytest.param(a_cluster(FROZEN, ClusterState.HIBERNATED), STOPPED, id="deeper"),
        pytest.param(a_cluster(FROZEN, ClusterState.HIBERNATED), AWAKE, id="awake again"),
        pytest.param(
            a_cluster(FROZEN, ClusterState.PROGRESSING, observed=2), AWAKE, id="a changed mind"
        ),
    ],
)
def test_rests_that_may_be_asked_for(old: Cluster, wish: ClusterRest) -> None:
    assert ClusterRules().admit_update(old, changed(old, rest=wish), a_world()).spec.rest == wish


@pytest.mark.parametrize(
    "old, wish, words",
    [
        pytest.param(
            a_cluster(state=ClusterState.PROGRESSING), FROZEN, "PROGRESSING", id="not finished"
        ),
        pytest.param(a_cluster(observed=2), FROZEN, "wait until", id="changed and not looked at"),
        pytest.param(a_cluster(state=ClusterState.FAILED), STOPPED, "FAILED", id="failed"),
        pytest.param(a_cluster(STOPPED), FROZEN, "deeper", id="from stopped to frozen"),
    ],
)
def test_rests_that_may_not(old: Cluster, wish: ClusterRest, words: str) -> None:
    with pytest.raises(Precondition, match=words):
        ClusterRules().admit_update(old, changed(old, rest=wish), a_world())


@pytest.mark.parametrize("field, value", [
    ("node_sets", {"compute": ClusterNodeSet(host_type=SMALL, size=5)}),
    ("version", ClusterVersionReference(id="v1.36.3")),
    ("pull_secret", "another"),
    ("restore", ClusterRestore(backup="b-1", request="first")),
])  # fmt: skip
def test_what_rests_changes_in_nothing_else(field: str, value: Any) -> None:
    world = a_world(a_version("1.36.3"))
    asleep = a_cluster(FROZEN, ClusterState.HIBERNATED)
    with pytest.raises(Precondition, match="resume it first"):
        ClusterRules().admit_update(asleep, changed(asleep, **{field: value}), world)
    with pytest.raises(Precondition, match="resume it first"):
        ClusterRules().admit_update(asleep, changed(asleep, rest=AWAKE, **{field: value}), world)
    with pytest.raises(Precondition, match="of its own"):
        ClusterRules().admit_update(
            a_cluster(), changed(a_cluster(), rest=FROZEN, **{field: value}), world
        )


# --- versions -----------------------------------------------------------------------------------

CATALOGUE = [
    a_version("1.35.1"),
    a_version("1.35.4"),
    a_version("1.35.9", enabled=False),
    a_version("1.36.3"),
    a_version("1.38.0"),
]


@pytest.mark.parametrize(
    "running, wanted",
    [
        pytest.param("1.35.1", "1.35.4", id="a patch up"),
        pytest.param("1.35.4", "1.35.1", id="a patch down"),
        pytest.param("1.35.4", "1.36.3", id="one minor up"),
        pytest.param("4.17.9", "4.18.3", id="of any product"),
        pytest.param("1.36.3", "4.18.3", id="another major is the platform's to judge"),
        pytest.param("nightly", "1.36.3", id="so is what is no number"),
    ],
)
def test_changes_of_version_that_may_be(running: str, wanted: str) -> None:
    assert find_change_violation(running, wanted, CATALOGUE) is None


@pytest.mark.parametrize(
    "running, wanted, remedy",
    [
        pytest.param("1.36.3", "1.35.4", "never goes back", id="a minor down"),
        pytest.param("1.34.2", "1.36.3", "go to 1.35.4 first, then 1.36.3", id="two minors up"),
        pytest.param("1.33.0", "1.36.3", "it leads over 1.34, and", id="a minor nobody has"),
        pytest.param("1.35.4", "1.38.0", "it leads over 1.37, and", id="three up, one missing"),
        pytest.param(
            "1.34.2-rc.1", "1.36.3", "go to 1.35.4 first, then 1.36.3", id="from a candidate"
        ),
    ],
)
def test_changes_of_version_that_may_not(running: str, wanted: str, remedy: str) -> None:
    found = find_change_violation(running, wanted, CATALOGUE)
    assert found is not None
    assert remedy in found.remedy
    assert found.path == "spec.version"


def test_a_long_way_names_every_step() -> None:
    catalogue = [*CATALOGUE, a_version("1.37.2")]
    found = find_change_violation("1.35.4", "1.38.0", catalogue)
    assert found is not None
    assert found.remedy == "go to 1.36.3 first, then 1.37.2, then 1.38.0"


def test_what_runs_counts_and_not_what_was_asked_for() -> None:
    """1.36 was asked for and did not come up: 1.35 runs, so 1.35 is no way back and 1.37 is too far."""
    failed = a_cluster(state=ClusterState.FAILED, version=ClusterVersionReference(id="v1.36.3"))
    world = a_world(a_version("1.36.3"), a_version("1.37.0"))
    back = changed(failed, version=ClusterVersionReference(id="v1.35.4"))
    assert ClusterRules().admit_update(failed, back, world).spec.version.id == "v1.35.4"
    far = changed(failed, version=ClusterVersionReference(id="v1.37.0"))
    with pytest.raises(Refused, match=r"go to 1\.36\.3 first"):
        ClusterRules().admit_update(failed, far, world)


@pytest.mark.parametrize("one, other, newer", [
    ("1.36.0", "1.35.9", True),
    ("1.35.9", "1.35.0", False),
    ("1.34.0", "1.36.0", False),
    ("4.17.0", "1.36.0", True),
    ("nightly", "1.36.0", False),
])  # fmt: skip
def test_which_minor_is_newer(one: str, other: str, newer: bool) -> None:
    assert is_newer_minor(one, other) is newer


# --- templates ----------------------------------------------------------------------------------


def test_a_tenant_does_not_contradict_the_template() -> None:
    template = replace(TEMPLATE, hub_labels={"platform": "local"})
    world = a_world(template)
    new = Cluster(
        metadata=Metadata(name="web", tenant="acme"),
        spec=ClusterSpec(template=ClusterTemplateReference(id="ocp"), hub_labels={"disk": "fast"}),
    )
    admitted = ClusterRules().admit_create(new, world)
    assert admitted.spec.hub_labels == {"disk": "fast", "platform": "local"}
    wrong = changed(new, hub_labels={"platform": "other"})
    with pytest.raises(Refused, match="leave it out"):
        ClusterRules().admit_create(wrong, world)


@pytest.mark.parametrize("field", ["hub_labels", "platform_settings"])
@pytest.mark.parametrize("entries", [
    {"": "x"}, {"x" * 300: "x"}, {"x": "y" * 5000}, {str(n): "" for n in range(65)}
])  # fmt: skip
def test_labels_and_settings_of_a_template_are_bounded(field: str, entries: dict[str, str]) -> None:
    with pytest.raises(Refused, match=field):
        ClusterTemplateRules().admit_create(replace(TEMPLATE, **{field: entries}), a_world())


# --- backups ------------------------------------------------------------------------------------

BACKUP = Backup(
    id="b-1",
    metadata=Metadata(name="copy", tenant="acme"),
    spec=BackupSpec(cluster="c-1"),
    status=BackupStatus(state=BackupState.PENDING, hub="hub-1", tries=2, cluster_name="web"),
)
BUG = AttemptFailure(AttemptFault.BUG, "InternalError", "internal error 1a2b")
NO_ANSWER = AttemptFailure(AttemptFault.UNAVAILABLE, "Unavailable", "hub-1 does not answer")


@pytest.mark.parametrize(
    "answer, gone, state, tries",
    [
        pytest.param(
            Done({"bytes": "7", "version": "1.35.4"}), False, BackupState.READY, 0, id="taken"
        ),
        pytest.param(Waiting("writing", 2), False, BackupState.PENDING, 0, id="under way"),
        pytest.param(NO_ANSWER, False, BackupState.PENDING, 3, id="no answer: again"),
        pytest.param(NO_ANSWER, True, BackupState.FAILED, 2, id="the cluster is gone: never"),
        pytest.param(BUG, False, BackupState.PENDING, 3, id="a bug: again"),
        pytest.param(
            AttemptFailure(AttemptFault.REFUSED, "NoBackups", "hub-1 has none"),
            False,
            BackupState.FAILED,
            2,
            id="refused",
        ),
    ],
)
def test_what_a_try_makes_of_a_backup(
    answer: Outcome | AttemptFailure, gone: bool, state: BackupState, tries: int
) -> None:
    found = progress.apply_take_attempt(BACKUP, answer, cluster_gone=gone, now=NOW)
    assert (found.state, found.tries) == (state, tries)
    assert "hub-1" not in found.message, "tenants read this"
    assert (found.next_look is not None) == (state == BackupState.PENDING)


def test_a_bug_that_comes_back_is_given_up_after_three() -> None:
    backup = BACKUP
    for _ in range(3):
        status = progress.apply_take_attempt(backup, BUG, cluster_gone=False, now=NOW)
        backup = replace(backup, status=status)
    assert backup.status.state == BackupState.FAILED
    assert "internal error" in backup.status.cause


def test_a_folder_of_the_provider_is_not_told() -> None:
    backup = replace(BACKUP, spec=replace(BACKUP.spec, folder="/srv/copies"))
    refusal = AttemptFailure(AttemptFault.REFUSED, "NoFolder", "/srv/copies is not there")
    found = progress.apply_take_attempt(backup, refusal, cluster_gone=False, now=NOW)
    assert "/srv" not in found.message
    assert "/srv" in found.cause


def test_a_backup_never_changes() -> None:
    with pytest.raises(Refused):
        BackupRules().admit_update(BACKUP, BACKUP, a_world())


@pytest.mark.parametrize("taken, refused", [
    ("1.36.3", True),
    ("1.35.9", False),
    ("1.34.0", False),
])  # fmt: skip
def test_a_backup_goes_into_the_same_or_a_later_minor(taken: str, refused: bool) -> None:
    status = BackupStatus(state=BackupState.READY, hub="hub-1", version=taken)
    old = replace(a_cluster(), status=replace(a_cluster().status, hub="hub-1"))
    new = changed(old, restore=ClusterRestore(backup="b-1", request="first"))
    world = a_world(replace(BACKUP, status=status), a_version("1.35.4"))

    if refused:
        with pytest.raises(Refused, match="later minor"):
            ClusterRules().admit_update(old, new, world)
    else:
        assert ClusterRules().admit_update(old, new, world).spec.restore.backup == "b-1"
