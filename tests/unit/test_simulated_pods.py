"""What a simulated kubelet does next with a pod, as a table of moments."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

import pytest

from boatyard.platforms.drivers.local.nodes.pods import (
    FAILS_ANNOTATION,
    RUNS_FOR_ANNOTATION,
    DeletePod,
    Pod,
    PodNodeState,
    WaitUntil,
    WriteStatus,
    choose_next_action,
    crash_loop,
    parse_pod,
)

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
START = NOON.timestamp()
GROUND = PodNodeState("10.1.0.1", boot_started_at=START - 600)


class Kubelet:
    """Plays one pod through its moves, writing what it is told to write as an API server would."""

    def __init__(self, **spec: Any) -> None:
        annotations = spec.pop("annotations", {})
        about = {"name": "p", "namespace": "d", "uid": "u", "resourceVersion": "7"}
        self.item: dict[str, Any] = {
            "metadata": {**about, "annotations": annotations},
            "spec": {
                "nodeName": "n",
                "restartPolicy": "Always",
                "containers": [{"name": "web", "image": "web:1"}],
                **spec,
            },
            "status": {
                "phase": "Pending",
                "conditions": [{"type": "PodScheduled", "status": "True"}],
            },
        }
        self.now = START
        self.ground = GROUND
        self.gone = False

    @property
    def pod(self) -> Pod:
        return parse_pod(self.item)

    def move(self) -> Any:
        """What would be done next."""
        now = datetime.fromtimestamp(self.now, UTC)
        return choose_next_action(self.pod, self.ground, "10.2.0.5", now)

    def settle(self) -> None:
        """Does all there is to do at this moment."""
        for _ in range(5):
            match self.move():
                case WriteStatus(status):
                    self.item["status"] |= status
                case DeletePod():
                    self.gone = True
                    return
                case _:
                    return
        raise AssertionError("it never settles")

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        self.settle()

    def ask_to_leave(self, grace: int = 30) -> None:
        at = datetime.fromtimestamp(self.now + grace, UTC)
        self.item["metadata"] |= {
            "deletionTimestamp": at.isoformat().replace("+00:00", "Z"),
            "deletionGracePeriodSeconds": grace,
        }

    def condition(self, name: str) -> str:
        return {one["type"]: one["status"] for one in self.item["status"]["conditions"]}[name]

    @property
    def container(self) -> dict[str, Any]:
        (found,) = self.item["status"]["containerStatuses"]
        return dict(found)


def test_a_bound_pod_runs_at_once_and_is_then_left_in_peace() -> None:
    kubelet = Kubelet(
        initContainers=[{"name": "init"}, {"name": "side", "restartPolicy": "Always"}]
    )
    kubelet.settle()

    status = kubelet.item["status"]
    assert (status["phase"], status["podIP"], status["hostIP"]) == (
        "Running",
        "10.2.0.5",
        "10.1.0.1",
    )
    assert (kubelet.condition("Ready"), kubelet.condition("PodScheduled")) == ("True", "True")
    assert kubelet.container["state"] == {"running": {"startedAt": "2026-01-01T12:00:00Z"}}
    assert kubelet.container["restartCount"] == 0
    states = {one["name"]: list(one["state"]) for one in status["initContainerStatuses"]}
    assert states == {"init": ["terminated"], "side": ["running"]}
    assert kubelet.move() is None


def test_a_node_that_is_not_ready_starts_nothing_but_lets_go() -> None:
    kubelet = Kubelet()
    kubelet.ground = PodNodeState("10.1.0.1", boot_started_at=0.0, starts_pods=False)
    assert kubelet.move() is None

    kubelet.ask_to_leave()
    kubelet.pass_time(1)
    assert kubelet.gone


@pytest.mark.parametrize(
    "policy, annotations, seconds, phase, code",
    [
        ("Never", {}, 1, "Succeeded", 0),
        ("OnFailure", {}, 1, "Succeeded", 0),
        ("Never", {RUNS_FOR_ANNOTATION: "20"}, 20, "Succeeded", 0),
        ("Never", {RUNS_FOR_ANNOTATION: "soon"}, 1, "Succeeded", 0),
        ("Never", {FAILS_ANNOTATION: "true"}, 1, "Failed", 1),
    ],
)
def test_a_pod_that_ends_by_itself_does(
    policy: str, annotations: dict[str, str], seconds: float, phase: str, code: int
) -> None:
    kubelet = Kubelet(restartPolicy=policy, annotations=annotations)
    kubelet.settle()
    assert kubelet.item["status"]["phase"] == "Running"
    assert kubelet.move() == WaitUntil(START + seconds)

    kubelet.pass_time(seconds)
    assert kubelet.item["status"]["phase"] == phase
    assert kubelet.container["state"]["terminated"]["exitCode"] == code
    assert kubelet.condition("Ready") == "False"
    assert kubelet.move() is None


def test_a_failing_pod_is_restarted_ever_more_patiently_and_recovers_when_it_may() -> None:
    kubelet = Kubelet(annotations={FAILS_ANNOTATION: "true"})
    kubelet.settle()
    assert kubelet.container["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    assert (kubelet.container["restartCount"], kubelet.condition("Ready")) == (1, "False")
    assert kubelet.move() == WaitUntil(START + 10)

    kubelet.pass_time(10)
    assert kubelet.container["restartCount"] == 2
    assert kubelet.move() == WaitUntil(START + 30)

    del kubelet.item["metadata"]["annotations"][FAILS_ANNOTATION]
    kubelet.settle()
    assert (kubelet.container["restartCount"], kubelet.condition("Ready")) == (3, "True")


@pytest.mark.parametrize(
    "elapsed, restarts, again_at",
    [
        (-5, 1, 10),
        (0, 1, 10),
        (9.9, 1, 10),
        (10, 2, 30),
        (30, 3, 70),
        (309.9, 5, 310),
        (310, 6, 610),
        (609.9, 6, 610),
        (610, 7, 910),
        (620, 7, 910),
        (910, 8, 1210),
    ],
)
def test_crash_loops(elapsed: float, restarts: int, again_at: float) -> None:
    assert crash_loop(elapsed) == (restarts, again_at)


def test_a_pod_said_to_fail_since_the_year_one_costs_no_more_than_another() -> None:
    """Its start is the tenant's to write. Walked restart by restart this takes a minute of everybody's."""
    kubelet = Kubelet(annotations={FAILS_ANNOTATION: "true"})
    kubelet.settle()
    kubelet.item["status"]["startTime"] = "0001-01-01T00:00:00Z"
    began = time.process_time()
    kubelet.settle()
    assert time.process_time() - began < 1
    assert 200_000_000 < kubelet.container["restartCount"] < 2**31


@pytest.mark.parametrize("moment", ["0000-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "soon"])
def test_a_pod_with_an_odd_start_is_played_on(moment: str) -> None:
    kubelet = Kubelet(annotations={FAILS_ANNOTATION: "true"})
    kubelet.settle()
    kubelet.item["status"]["startTime"] = moment
    kubelet.settle()
    assert kubelet.container["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    move = kubelet.move()
    assert isinstance(move, WaitUntil)
    assert move.at > kubelet.now, "it is not looked at over and over"


@pytest.mark.parametrize("grace, seconds", [(30, 1), (1, 1), (3600, 1)])
def test_a_pod_asked_to_leave_stops_within_a_moment(grace: int, seconds: float) -> None:
    kubelet = Kubelet()
    kubelet.settle()
    kubelet.ask_to_leave(grace)

    assert kubelet.move() == WaitUntil(START + seconds)
    kubelet.pass_time(seconds)
    assert kubelet.gone
    assert kubelet.item["status"]["phase"] == "Running"


def test_a_pod_that_somebody_counts_shows_how_it_ended_before_it_goes() -> None:
    kubelet = Kubelet(restartPolicy="OnFailure", annotations={RUNS_FOR_ANNOTATION: "60"})
    kubelet.settle()
    kubelet.ask_to_leave()
    kubelet.pass_time(1)

    assert (kubelet.item["status"]["phase"], kubelet.gone) == ("Failed", True)


def test_a_pod_held_by_finalizers_only_is_not_removed_again() -> None:
    kubelet = Kubelet()
    kubelet.settle()
    kubelet.ask_to_leave(0)

    assert kubelet.move() is None


def test_after_a_reboot_containers_are_started_again() -> None:
    kubelet = Kubelet()
    kubelet.settle()
    kubelet.now += 100
    kubelet.ground = PodNodeState("10.1.0.1", boot_started_at=START + 90)
    kubelet.settle()

    assert kubelet.container["restartCount"] == 1
    assert kubelet.container["state"]["running"]["startedAt"] == "2026-01-01T12:01:40Z"
    assert kubelet.move() is None


def test_a_pod_started_in_the_second_its_machine_booted_is_not_restarted_for_ever() -> None:
    kubelet = Kubelet()
    kubelet.ground = PodNodeState("10.1.0.1", boot_started_at=START + 0.7)
    kubelet.now = START + 0.8
    kubelet.settle()

    assert kubelet.container["restartCount"] == 0
    assert kubelet.move() is None


def test_a_pod_that_others_marked_not_ready_is_ready_again() -> None:
    kubelet = Kubelet()
    kubelet.settle()
    for one in kubelet.item["status"]["conditions"]:
        if one["type"] == "Ready":
            one["status"] = "False"
    kubelet.settle()

    assert kubelet.condition("Ready") == "True"
    assert kubelet.container["restartCount"] == 0


def test_readiness_gates_are_waited_for() -> None:
    kubelet = Kubelet(readinessGates=[{"conditionType": "example.com/open"}])
    kubelet.settle()
    assert (kubelet.condition("ContainersReady"), kubelet.condition("Ready")) == ("True", "False")

    kubelet.item["status"]["conditions"].append({"type": "example.com/open", "status": "True"})
    kubelet.settle()
    assert kubelet.condition("Ready") == "True"


def test_another_image_is_another_start() -> None:
    kubelet = Kubelet()
    kubelet.settle()
    kubelet.item["spec"]["containers"][0]["image"] = "web:2"
    kubelet.settle()

    assert (kubelet.container["image"], kubelet.container["restartCount"]) == ("web:2", 1)
