"""Masks as values: what a path chooses, and that nothing else ever changes."""

from __future__ import annotations

import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boatyard.api import masks
from boatyard.model import wire
from boatyard.model.errors import Refused
from boatyard.model.generated.osac import (
    Cluster,
    ClusterNetwork,
    ClusterNodeSet,
    ClusterSpec,
    ClusterStatus,
    HostTypeReference,
    Metadata,
)

PUBLIC = wire.message("osac.public.v1.Cluster").DESCRIPTOR
PRIVATE = wire.message("osac.private.v1.Cluster").DESCRIPTOR

words = st.text(string.ascii_lowercase, max_size=3)
keys = st.text("ab.", min_size=1, max_size=3)
node_sets = st.builds(
    ClusterNodeSet,
    host_type=st.builds(HostTypeReference, id=words),
    size=st.integers(0, 3),
    fabric_interface=words,
)
clusters = st.builds(
    Cluster,
    metadata=st.builds(
        Metadata,
        labels=st.dictionaries(keys, words, max_size=3),
        finalizers=st.lists(words, max_size=2).map(tuple),
        description=words,
    ),
    spec=st.builds(
        ClusterSpec,
        node_sets=st.dictionaries(st.sampled_from("abc"), node_sets, max_size=3),
        network=st.none() | st.builds(ClusterNetwork, pod_cidr=st.none() | words),
        zone=words,
    ),
    status=st.builds(ClusterStatus, hub=words, api_url=words),
)
paths = st.sampled_from(
    [
        "metadata.labels",
        "metadata.labels.a",
        "metadata.labels.a.b",
        "metadata.description",
        "spec",
        "spec.zone",
        "spec.network",
        "spec.network.pod_cidr",
        "spec.node_sets",
        "spec.node_sets.a",
        "spec.node_sets.a.size",
        "spec.node_sets.b.host_type.id",
        "status.api_url",
    ]
)


@given(old=clusters, new=clusters, chosen=st.lists(paths, min_size=1, max_size=3))
def test_what_is_not_named_stays(old: Cluster, new: Cluster, chosen: list[str]) -> None:
    merged = masks.merge(old, new, masks.parse_paths(chosen, PUBLIC), PUBLIC)
    for path in _leaves(old) | _leaves(new) | _leaves(merged):
        if not any(_covers(mask, path) for mask in chosen):
            assert _at(merged, path) == _at(old, path), path
    assert merged.metadata.finalizers == old.metadata.finalizers
    assert merged.status.hub == old.status.hub
    for name, node_set in merged.spec.node_sets.items():
        if name in old.spec.node_sets:
            assert node_set.fabric_interface == old.spec.node_sets[name].fabric_interface


@given(old=clusters, new=clusters, chosen=st.lists(paths, min_size=1, max_size=3))
def test_a_second_time_changes_nothing(old: Cluster, new: Cluster, chosen: list[str]) -> None:
    tree = masks.parse_paths(chosen, PUBLIC)
    once = masks.merge(old, new, tree, PUBLIC)
    assert masks.merge(once, new, tree, PUBLIC) == once


@given(old=clusters, new=clusters)
def test_without_a_mask_all_that_is_shown_is_replaced(old: Cluster, new: Cluster) -> None:
    assert masks.merge(old, new, {}, PRIVATE) == new
    shown = masks.merge(old, new, {}, PUBLIC)
    assert shown.spec.zone == new.spec.zone
    assert shown.metadata.labels == new.metadata.labels
    assert set(shown.spec.node_sets) == set(new.spec.node_sets)
    assert shown.status.hub == old.status.hub


@given(cluster=clusters)
def test_nothing_is_changed_by_itself(cluster: Cluster) -> None:
    for descriptor in (PUBLIC, PRIVATE):
        assert masks.merge(cluster, cluster, {}, descriptor) == cluster


@pytest.mark.parametrize(
    "path, after",
    [
        pytest.param("metadata.labels.a", {"b": "2"}, id="a key that the body lacks is gone"),
        pytest.param("metadata.labels.c", {"a": "1", "b": "2"}, id="one that nobody has"),
        pytest.param("metadata.labels", {}, id="the whole map"),
    ],
)
def test_what_the_mask_names_and_the_body_lacks_is_gone(path: str, after: dict[str, str]) -> None:
    old = Cluster(metadata=Metadata(labels={"a": "1", "b": "2"}))
    merged = masks.merge(old, Cluster(), masks.parse_paths([path], PUBLIC), PUBLIC)
    assert merged.metadata.labels == after


def test_a_node_set_that_the_mask_names_and_the_body_lacks_is_gone() -> None:
    old = Cluster(spec=ClusterSpec(node_sets={"a": ClusterNodeSet(), "b": ClusterNodeSet(size=2)}))
    merged = masks.merge(old, Cluster(), masks.parse_paths(["spec.node_sets.a"], PUBLIC), PUBLIC)
    assert merged.spec.node_sets == {"b": ClusterNodeSet(size=2)}


@pytest.mark.parametrize(
    "path, tree",
    [
        ("spec.zone", {"spec": {"zone": {}}}),
        ("metadata.labels.a.b/c", {"metadata": {"labels": {"a.b/c": {}}}}),
        ("metadata.labels.`a.b`", {"metadata": {"labels": {"a.b": {}}}}),
        ("spec.node_sets.`a.b`.size", {"spec": {"node_sets": {"a.b": {"size": {}}}}}),
        ("spec.template_parameters.a", {"spec": {"template_parameters": {"a": {}}}}),
    ],
)
def test_paths(path: str, tree: masks.MaskTree) -> None:
    assert masks.parse_paths([path], PUBLIC) == tree


def test_a_shorter_path_covers_the_longer_ones() -> None:
    for chosen in (
        ["spec.node_sets.a.size", "spec.node_sets"],
        ["spec.node_sets", "spec.node_sets.a"],
    ):
        assert masks.parse_paths(chosen, PUBLIC) == {"spec": {"node_sets": {}}}


@pytest.mark.parametrize(
    "path",
    [
        "",
        ".",
        "spec.",
        ".spec",
        "spec..zone",
        "spec.no",
        "spec.zone.below",
        "status.conditions.0",
        "status.conditions[0]",
        "metadata.creation_timestamp.seconds",
        "spec.template_parameters.a.value",
        "status.hub",
        "spec.node_sets.",
        "spec.node_sets.`",
    ],
)
def test_paths_that_lead_nowhere(path: str) -> None:
    with pytest.raises(Refused) as refused:
        masks.parse_paths([path], PUBLIC)
    assert refused.value.violations[0].path == "update_mask"


def test_a_branch_can_be_taken_out_of_a_mask() -> None:
    tree = masks.parse_paths(["status.state", "spec.zone", "metadata"], PUBLIC)
    assert masks.contains_path(tree, "status")
    assert not masks.contains_path(tree, "id")
    assert masks.remove_path(tree, "status") == {"spec": {"zone": {}}, "metadata": {}}
    assert masks.remove_path(tree, "metadata.version") == tree, (
        "a part of a whole is kept elsewhere"
    )
    assert masks.contains_path(masks.parse_paths(["status"], PUBLIC), "status")
    assert not masks.contains_path(masks.parse_paths(["metadata"], PUBLIC), "metadata.version")


@pytest.mark.parametrize(
    "body, paths",
    [
        ({"spec": {"zone": "x"}}, ["spec.zone"]),
        ({"spec": {}}, ["spec"]),
        ({"spec": {"node_sets": {"a": {"size": 1}}}}, ["spec.node_sets"]),
        (
            {"metadata": {"labels": {"a": "b"}, "description": "x"}},
            ["metadata.labels", "metadata.description"],
        ),
        (
            {"status": {"stateTransitionTime": "2026-01-01T00:00:00Z"}},
            ["status.state_transition_time"],
        ),
        ({"status": {"conditions": [{"type": 1}]}}, ["status.conditions"]),
    ],
)
def test_the_mask_of_a_patch(body: dict[str, Any], paths: list[str]) -> None:
    assert masks.paths_in_body(body, PUBLIC) == paths


def _leaves(cluster: Cluster) -> set[tuple[str, ...]]:
    found = {("spec", "zone"), ("status", "api_url"), ("metadata", "description")}
    found |= {("metadata", "labels", key) for key in cluster.metadata.labels}
    if cluster.spec.network is not None:
        found.add(("spec", "network", "pod_cidr"))
    for name in cluster.spec.node_sets:
        found |= {
            ("spec", "node_sets", name, "size"),
            ("spec", "node_sets", name, "host_type", "id"),
        }
    return found


def _covers(mask: str, path: tuple[str, ...]) -> bool:
    if mask.startswith("metadata.labels."):
        return path == ("metadata", "labels", mask.removeprefix("metadata.labels."))
    named = tuple(mask.split("."))
    # A path below a missing entry or message makes it: its other fields come into being, empty.
    return path[: len(named)] == named


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        if value is None:
            return None
        value = value.get(name) if isinstance(value, dict) else getattr(value, name)
    return value or None
