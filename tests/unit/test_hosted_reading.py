"""What HyperShift's conditions mean."""

from __future__ import annotations

from typing import Any

import pytest

from boatyard.model.errors import Refused
from boatyard.platforms.drivers.hosted import hypershift_status
from boatyard.platforms.port import ObservedNode
from tests.support.kube_hub.hosted_values import (
    ALL_WELL,
    cluster,
    condition,
    image_of,
    pool,
    status,
    well,
)

PARTIAL, COMPLETED = "Partial", "Completed"


def told(state: Any, generation: int = 1, **about: Any) -> dict[str, Any]:
    manifest = cluster()
    manifest["metadata"].update(generation=generation, **about)
    return {**manifest, "status": state}


@pytest.mark.parametrize(
    "true, reason",
    [
        pytest.param((), "PreparingInfrastructure", id="first the infrastructure"),
        pytest.param(ALL_WELL[:1], "ControlPlaneStarting", id="then etcd"),
        pytest.param(ALL_WELL[:2], "ControlPlaneStarting", id="then the API server"),
        pytest.param(ALL_WELL[:3], "ControlPlaneStarting", id="then the rest"),
        pytest.param(ALL_WELL, "WorkersJoining", id="then the nodes"),
    ],
)
def test_stages(true: tuple[str, ...], reason: str) -> None:
    conditions = [
        condition(kind, "True" if kind in true else "False", "Waiting") for kind in ALL_WELL
    ]
    stage = hypershift_status.stage_of(told(status(*conditions)))
    assert stage.reason == reason
    assert stage.message.endswith(".")


@pytest.mark.parametrize(
    "state, about, reason",
    [
        pytest.param({}, {}, "StageUnknown", id="nothing said yet"),
        pytest.param({"conditions": None}, {}, "StageUnknown", id="nothing, in so many words"),
        pytest.param(
            status(condition("ReconciliationActive", "False")), {}, "Paused", id="paused by hand"
        ),
        pytest.param(
            well(), {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "Deleting", id="on its way out"
        ),
    ],
)
def test_stages_beside_the_road(state: Any, about: dict[str, Any], reason: str) -> None:
    assert hypershift_status.stage_of(told(state, **about)).reason == reason


@pytest.mark.parametrize(
    "kind",
    [
        "ValidConfiguration",
        "SupportedHostedCluster",
        "ValidReleaseImage",
        "ValidHostedControlPlaneConfiguration",
        "PlatformCredentialsFound",
    ],
)
def test_what_stays_wrong_until_something_else_is_asked_for_is_refused(kind: str) -> None:
    broken = condition(kind, "False", "Because", message="words of the hub", observedGeneration=2)
    with pytest.raises(Refused) as caught:
        hypershift_status.check_not_blocked(told(status(broken), generation=2))
    assert caught.value.reason == "Because"
    assert "words of the hub" in str(caught.value)


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(
            condition("ValidConfiguration", "False", "Because", observedGeneration=1),
            id="it speaks of an earlier wish",
        ),
        pytest.param(condition("ValidConfiguration", "Unknown", "StatusUnknown"), id="not known"),
        pytest.param(condition("ValidConfiguration", "False", "StatusUnknown"), id="not judged"),
        pytest.param(condition("Degraded", "True", "UnavailableReplicas"), id="something else"),
        pytest.param(condition("ValidConfiguration", "True"), id="all well"),
    ],
)
def test_what_may_still_come_right_is_not(state: Any) -> None:
    hypershift_status.check_not_blocked(told(status(state), generation=2))


@pytest.mark.parametrize(
    "kind",
    ["ValidReleaseImage", "ValidPlatformConfig", "ValidMachineConfig", "SupportedVersionSkew"],
)
def test_a_node_pool_that_stays_wrong_is_refused(kind: str) -> None:
    broken = {**pool(), "status": {"conditions": [condition(kind, "False", "Because")]}}
    with pytest.raises(Refused) as caught:
        hypershift_status.check_pool_not_blocked(broken)
    assert caught.value.reason == "Because"


@pytest.mark.parametrize(
    "history, version",
    [
        pytest.param([], "", id="nothing yet"),
        pytest.param([("4.17.1", PARTIAL)], "4.17.1", id="the first, being installed"),
        pytest.param([("4.17.1", COMPLETED)], "4.17.1", id="complete"),
        pytest.param(
            [("4.17.2", PARTIAL), ("4.17.1", COMPLETED)],
            "4.17.1",
            id="the new one is not there yet",
        ),
        pytest.param([("4.17.2", COMPLETED), ("4.17.1", COMPLETED)], "4.17.2", id="now it is"),
    ],
)
def test_the_version_that_can_be_relied_on(history: Any, version: str) -> None:
    assert hypershift_status.running_version(told(well(history=history))) == version


@pytest.mark.parametrize(
    "history, desired, settled, without_nodes",
    [
        pytest.param([("4.17.2", COMPLETED)], "", True, True, id="it is complete"),
        pytest.param([("4.17.2", PARTIAL)], "", True, True, id="the first, while nodes join"),
        pytest.param([("4.17.2", PARTIAL), ("4.17.1", COMPLETED)], "", False, True, id="under way"),
        pytest.param(
            [("4.17.2", PARTIAL), ("4.17.1", PARTIAL)], "", False, True, id="changed half way"
        ),
        pytest.param([("4.17.1", COMPLETED)], "", False, False, id="not even begun"),
        pytest.param([("4.17.1", COMPLETED)], "4.17.2", False, False, id="taken up, not begun"),
        pytest.param([], "", False, False, id="nothing yet"),
    ],
)
def test_whether_the_control_plane_is_at_a_release(
    history: Any, desired: str, settled: bool, without_nodes: bool
) -> None:
    state = status(*(condition(kind) for kind in ALL_WELL), history=history, desired=desired)
    release = hypershift_status.HostedRelease("4.17.2", image_of("4.17.2"))
    assert hypershift_status.has_reached_release(told(state), release, nodes=True) is settled
    assert hypershift_status.has_reached_release(told(state), release, nodes=False) is without_nodes


def test_a_release_is_known_by_its_version_where_a_mirror_gives_it_another_name() -> None:
    seen = told(well(history=[("4.17.2", COMPLETED), ("4.17.1", COMPLETED)]))
    mirrored = hypershift_status.HostedRelease("4.17.2", "mirror.invalid/release@sha256:0")
    assert hypershift_status.has_reached_release(seen, mirrored, nodes=True)
    other = hypershift_status.HostedRelease("4.17.3", "mirror.invalid/release@sha256:1")
    assert not hypershift_status.has_reached_release(seen, other, nodes=True)


def test_a_release_is_known_by_its_image_too() -> None:
    seen = told(well(history=[("4.17.2", COMPLETED)]))
    assert hypershift_status.has_reached_release(
        seen, hypershift_status.HostedRelease("?", image_of("4.17.2")), nodes=True
    )


def test_a_release_that_is_not_accepted() -> None:
    refused = condition("ValidReleaseImage", "False", "InvalidImage")
    found = hypershift_status.blocked_release(told(well(refused)))
    assert found is not None
    assert found.reason == "InvalidImage"
    assert hypershift_status.blocked_release(told(well(condition("ValidReleaseImage")))) is None
    assert hypershift_status.blocked_release(told(well())) is None


def test_the_reason_is_that_of_the_first_that_is_wrong() -> None:
    both = [
        condition("ValidConfiguration", "False", "First"),
        condition("ValidReleaseImage", "False", "Second"),
    ]
    with pytest.raises(Refused) as caught:
        hypershift_status.check_not_blocked(told(status(*both)))
    assert (caught.value.reason, len(caught.value.violations)) == ("First", 2)


def test_a_condition_that_gives_no_reason_has_one_all_the_same() -> None:
    bare = {"type": "ValidConfiguration", "status": "False"}
    with pytest.raises(Refused) as caught:
        hypershift_status.check_not_blocked(told(status(bare)))
    assert caught.value.reason == "Blocked"


def test_before_there_is_a_history_the_wish_is_the_version() -> None:
    seen = told(status(desired="4.17.1"))
    assert hypershift_status.running_version(seen) == "4.17.1"


def test_the_version_that_an_image_turned_out_to_be() -> None:
    seen = told(well(history=[("4.17.2", PARTIAL), ("4.17.1", COMPLETED)]))
    assert hypershift_status.version_of_image(seen, image_of("4.17.2")) == "4.17.2"
    assert hypershift_status.version_of_image(seen, image_of("4.18.0")) == ""


@pytest.mark.parametrize(
    "image, version, updating, expected",
    [
        pytest.param("4.17.2", "4.17.2", "False", True, id="all nodes are there"),
        pytest.param("4.17.2", "4.17.1", "True", False, id="on its way"),
        pytest.param("4.17.2", "4.17.2", "True", False, id="the last node is not"),
        pytest.param("4.17.1", "4.17.1", "False", False, id="never asked"),
    ],
)
def test_whether_nodes_have_followed(
    image: str, version: str, updating: str, expected: bool
) -> None:
    there = pool()
    there["spec"]["release"]["image"] = image_of(image)
    there["status"] = {"version": version, "conditions": [condition("UpdatingVersion", updating)]}
    assert hypershift_status.is_pool_updated(there, image_of("4.17.2"), "4.17.2") is expected


READY, NOT_READY = ObservedNode("c-0", "c", True), ObservedNode("c-1", "c", False)


@pytest.mark.parametrize(
    "more, nodes, joined, degraded",
    [
        pytest.param((), (READY,), ("c-0",), False, id="all well"),
        pytest.param((), (NOT_READY,), (), False, id="a node that has not joined yet"),
        pytest.param((), (READY, NOT_READY), ("c-0", "c-1"), True, id="a node that was lost"),
        pytest.param(
            (condition("Degraded", "True", "UnavailableReplicas"),),
            (),
            (),
            True,
            id="a replica short",
        ),
        pytest.param(
            (condition("Degraded", "True"), condition("Progressing", "True")),
            (),
            (),
            False,
            id="a replica short while something is rolled out",
        ),
        pytest.param(
            (condition("ClusterVersionFailing", "True"),), (), (), True, id="its operators fail"
        ),
        pytest.param(
            (condition("DataPlaneConnectionAvailable", "False"),),
            (READY,),
            ("c-0",),
            True,
            id="no way to its nodes",
        ),
        pytest.param(
            (condition("DataPlaneConnectionAvailable", "False"),),
            (),
            (),
            False,
            id="it has no nodes",
        ),
    ],
)
def test_degraded(more: Any, nodes: Any, joined: Any, degraded: bool) -> None:
    seen = hypershift_status.to_observed_cluster(told(well(*more)), nodes, joined)
    assert (seen.available, seen.degraded) == (True, degraded)
    assert bool(seen.message) is degraded
    assert seen.nodes == nodes


def test_a_new_cluster_whose_operators_wait_for_nodes_is_not_degraded() -> None:
    failing = condition("ClusterVersionFailing", "True", "ClusterOperatorsNotAvailable")
    assert not hypershift_status.to_observed_cluster(
        told(well(failing, history=[("4.17.1", PARTIAL)])), (), ()
    ).degraded


def test_a_cluster_that_is_not_available_is_not_degraded_but_says_why() -> None:
    state = status(condition("Available", "False"), condition("Degraded", "True"))
    seen = hypershift_status.to_observed_cluster(told(state), (), ())
    assert (seen.exists, seen.available, seen.degraded) == (True, False, False)
    assert seen.message


def test_a_cluster_on_its_way_out_is_not_available() -> None:
    seen = hypershift_status.to_observed_cluster(
        told(well(), deletionTimestamp="2026-01-01T00:00:00Z"), (), ()
    )
    assert (seen.exists, seen.available) == (True, False)


def test_words_for_tenants_are_ours() -> None:
    state = well(condition("Degraded", "True", "UnavailableReplicas", message="etcd-0 on host-7"))
    assert "host-7" not in hypershift_status.to_observed_cluster(told(state), (), ()).message
