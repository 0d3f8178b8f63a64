"""What cannot be right about real clusters, whatever was asked for."""

from __future__ import annotations

from typing import Any

import pytest

from boatyard.proof.keeper_state import KeeperState


def kept(*, strays: tuple[str, ...] = (), **changed: Any) -> KeeperState:
    cluster: dict[str, Any] = {
        "nodes": {"compute-0": {}},
        "processes": {"etcd-0": ["1.36.3/etcd"]},
        "api": {"nodes": {"compute-0": "ready"}, "left by checks": []},
    }
    return KeeperState(
        held=(), clusters={"c/cluster": cluster | changed}, orphans=strays, ports=frozenset()
    )


def test_a_cluster_in_order_has_no_contradictions() -> None:
    assert kept().find_contradictions() == []


def test_one_that_rests_cannot_be_asked_for_its_nodes() -> None:
    resting = kept()
    del resting.clusters["c/cluster"]["api"]

    assert resting.find_contradictions() == []


@pytest.mark.parametrize(
    "found, expected",
    [
        pytest.param(
            kept(processes={"etcd-0": ["1.36.3/etcd", "1.36.3/etcd"]}),
            "etcd-0 of c/cluster runs 2 times",
            id="a second process",
        ),
        pytest.param(
            kept(api={"nodes": {"compute-0": "", "compute-1": ""}}),
            "the API of c/cluster lists compute-0, compute-1 as nodes and was given compute-0",
            id="a node that has left",
        ),
        pytest.param(
            kept(api={"nodes": {}}),
            "the API of c/cluster lists nothing as nodes and was given compute-0",
            id="a node that is not there",
        ),
        pytest.param(
            kept(api={"nodes": {"compute-0": ""}, "left by checks": ["boatyard-check-workload"]}),
            "boatyard-check-workload is left in c/cluster",
            id="a trial that nobody removed",
        ),
        pytest.param(
            kept(strays=("a process etcd-0",)),
            "a process etcd-0 belongs to no cluster",
            id="what belongs to nobody",
        ),
    ],
)
def test_what_cannot_be_right_is_told(found: KeeperState, expected: str) -> None:
    assert found.find_contradictions() == [expected]
