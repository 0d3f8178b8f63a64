"""The player's smaller parts: pace, faults, versions, its agenda, its copies, and whom it knows."""

from __future__ import annotations

import ast
import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from boatyard.fakes import hypershift
from boatyard.fakes.hypershift.access import BadKubeconfig, read_access
from boatyard.fakes.hypershift.cache import ObjectCache
from boatyard.fakes.hypershift.faults import (
    BadFaults,
    find_fault_problems,
    parse_control_file,
)
from boatyard.fakes.hypershift.kinds import MACHINES, NAMESPACES
from boatyard.fakes.hypershift.releases import (
    DEFAULT_SUPPORTED,
    ReleaseImage,
    find_skew_problem,
    make_supported_config_map,
    read_release,
    read_supported_versions,
)
from boatyard.fakes.hypershift.scaling import matches_selector
from boatyard.fakes.hypershift.stage_delays import BadDelays, StageDelays, parse_delays
from boatyard.fakes.hypershift.work_queue import DueQueue
from tests.support.kube_hub.hypershift_manifests import hosted_cluster

Object = dict[str, Any]

# --- pace, faults, versions -------------------------------------------------------------------


@pytest.mark.parametrize("text, factor", [("instant", 0.0), ("realistic", 1.0), ("0.02", 0.02)])
def test_a_pace(text: str, factor: float) -> None:
    assert parse_delays(text).factor == factor


@pytest.mark.parametrize("text", ["", "fast", "-1", "nan", "inf"])
def test_no_pace(text: str) -> None:
    with pytest.raises(BadDelays):
        parse_delays(text)


def test_each_machine_has_a_pace_of_its_own_and_keeps_it() -> None:
    pace = StageDelays(1.0)

    times = {pace.seconds_for("install", f"machine-{number}") for number in range(50)}

    assert len(times) == 50
    assert 330 * 0.8 <= min(times) <= max(times) <= 330 * 1.2
    assert pace.seconds_for("install", "a") == pace.seconds_for("install", "a")


def test_a_control_file_speaks_of_objects_yet_to_come() -> None:
    said = parse_control_file(
        "faults:\n"
        "- {kind: HostedCluster, name: 'order-*', namespace: t, fault: blocked=QuotaExceeded}\n"
        "- {kind: HostedCluster, fault: slow=3}\n"
        "releases: {registry.example/x@sha256:1: 4.18.2}\n"
    )

    fits = said.faults_of("HostedCluster", hosted_cluster("t", "order-1"))
    other = said.faults_of("HostedCluster", hosted_cluster("t", "else"))
    assert fits.get_text("blocked", "") == "QuotaExceeded"
    assert "blocked" not in other
    assert other.extra_seconds == 3
    assert said.releases == {"registry.example/x@sha256:1": "4.18.2"}


def test_what_is_written_on_an_object_wins() -> None:
    said = parse_control_file("faults: [{kind: HostedCluster, fault: slow=3}]")
    cluster = hosted_cluster("t", "c")
    cluster["metadata"]["annotations"] = {"player.boatyard.io/fault": "slow=5, degraded"}

    planted = said.faults_of("HostedCluster", cluster)

    assert planted.extra_seconds == 5
    assert "degraded" in planted


@pytest.mark.parametrize(
    "text, place",
    [
        ("[", "not YAML"),
        ("[]", "say a mapping"),
        ("{fault: []}", "say a mapping"),
        ("{faults: yes}", "faults: not a list"),
        ("{faults: [{kind: Pod, fault: lost}]}", "faults[0].kind"),
        (
            "{faults: [{kind: Agent, fault: lost}, {kind: Agent, fault: blocked}]}",
            "faults[1].fault",
        ),
        ("{faults: [{kind: HostedCluster, fault: blocked=no such}]}", "faults[0].fault"),
        ("{faults: [{kind: HostedCluster, fault: slow=very}]}", "faults[0].fault"),
        ("{faults: [{kind: HostedCluster, fault: degraded=yes}]}", "faults[0].fault"),
        ("{faults: [{kind: Agent, fault: lost, when: now}]}", "faults[0]"),
    ],
)
def test_a_control_file_that_is_not_understood_names_the_place(text: str, place: str) -> None:
    with pytest.raises(BadFaults) as caught:
        parse_control_file(text)
    assert place in str(caught.value)


def test_a_planted_fault_that_is_not_understood_is_told_and_counts_as_nothing() -> None:
    cluster = hosted_cluster("t", "c")
    cluster["metadata"]["annotations"] = {"player.boatyard.io/fault": "degarded, slow=2"}

    assert len(find_fault_problems("HostedCluster", cluster)) == 1
    assert parse_control_file("").faults_of("HostedCluster", cluster).faults == {"slow": "2"}


@pytest.mark.parametrize(
    "image, version, arch",
    [
        ("quay.example/r:4.18.2-multi", "4.18.2", "Multi"),
        ("quay.example:5000/r:4.18.2-x86_64", "4.18.2", "AMD64"),
        ("quay.example/r:v5.0.1", "5.0.1", "AMD64"),
        ("quay.example/r:4.19.0-rc.2-aarch64", "4.19.0-rc.2", "ARM64"),
    ],
)
def test_a_tag_tells_the_version(image: str, version: str, arch: str) -> None:
    assert read_release(image, {}) == ReleaseImage(image, version, arch)


@pytest.mark.parametrize("image", ["quay.example/r", "quay.example/r:latest", "r@sha256:00", ""])
def test_an_image_that_tells_no_version(image: str) -> None:
    assert read_release(image, {}) is None


@pytest.mark.parametrize(
    "pool, control_plane, fits",
    [
        ("4.18.2", "4.18.2", True),
        ("4.18.3", "4.18.2", False),
        ("4.18.2-rc.1", "4.18.2", True),
        ("4.18.2", "4.18.2-rc.1", False),
        ("4.15.0", "4.18.2", True),
        ("4.14.9", "4.18.2", False),
        ("4.22.0", "5.0.0", True),
        ("4.20.0", "5.0.0", True),
        ("4.19.0", "5.0.0", False),
        ("5.0.0", "4.22.9", False),
    ],
)
def test_a_pool_is_never_newer_and_not_much_older(
    pool: str, control_plane: str, fits: bool
) -> None:
    assert (
        find_skew_problem(ReleaseImage("", pool), ReleaseImage("", control_plane)) == ""
    ) is fits


def test_the_supported_versions_are_what_the_config_map_says() -> None:
    assert read_supported_versions(make_supported_config_map()) == DEFAULT_SUPPORTED
    assert read_supported_versions(
        {"data": {"supported-versions": '{"versions": ["4.18", 4]}'}}
    ) == ("4.18",)
    for broken in (None, {}, {"data": {"supported-versions": "[]"}}):
        assert read_supported_versions(broken) == DEFAULT_SUPPORTED


@pytest.mark.parametrize(
    "operator, values, fits",
    [
        ("In", ["a", "b"], True),
        ("In", ["b"], False),
        ("NotIn", ["a"], False),
        ("NotIn", ["b"], True),
        ("Exists", [], True),
        ("DoesNotExist", [], False),
        ("Gt", ["1"], False),
    ],
)
def test_a_label_selector(operator: str, values: list[str], fits: bool) -> None:
    selector = {"matchExpressions": [{"key": "x", "operator": operator, "values": values}]}

    assert matches_selector(selector, {"x": "a"}) is fits
    assert matches_selector(None, {}) is True
    assert matches_selector({"matchLabels": {"x": "a"}}, {"x": "b"}) is False


# --- the agenda -------------------------------------------------------------------------------


async def test_a_key_named_often_is_handed_out_once() -> None:
    agenda: DueQueue[str] = DueQueue(lambda: 0.0)
    for _ in range(3):
        agenda.add("a")
    agenda.add("b")

    assert [await agenda.take(), await agenda.take()] == ["a", "b"]


async def test_a_key_that_is_worked_on_waits_for_its_turn() -> None:
    agenda: DueQueue[str] = DueQueue(lambda: 0.0)
    agenda.add("a")
    assert await agenda.take() == "a"
    agenda.add("a")
    second = asyncio.ensure_future(agenda.take())
    await asyncio.sleep(0)
    assert not second.done()

    agenda.finish("a")

    assert await asyncio.wait_for(second, 5) == "a"


async def test_what_is_due_later_comes_later_and_the_earliest_moment_counts() -> None:
    now = [0.0]
    agenda: DueQueue[str] = DueQueue(lambda: now[0])
    agenda.add_at("a", 100.0)
    agenda.add_at("a", 50.0)
    agenda.add_at("a", 70.0)
    waiting = asyncio.ensure_future(agenda.take())
    await asyncio.sleep(0)
    assert not waiting.done()

    now[0] = 60.0
    agenda.add("b")

    both = {await asyncio.wait_for(waiting, 5), await asyncio.wait_for(agenda.take(), 5)}
    assert both == {"a", "b"}


# --- copies -----------------------------------------------------------------------------------


def machine(name: str, version: int, **about: Any) -> Object:
    return {"metadata": {"name": name, "namespace": "n", "resourceVersion": str(version), **about}}


def held_by(things: ObjectCache) -> dict[str, str]:
    return {
        one["metadata"]["name"]: one["metadata"]["resourceVersion"] for one in things.list_all()
    }


def test_a_copy_never_goes_back() -> None:
    told: list[Object] = []
    things = ObjectCache(MACHINES, told.append)
    things.put(machine("a", 5))

    things.put(machine("a", 4))  # a watch that lags behind our own write
    things.remove(machine("a", 4))  # and the end of the one before

    assert held_by(things) == {"a": "5"}
    assert len(told) == 1


def test_a_list_takes_away_what_it_does_not_name() -> None:
    told: list[Object] = []
    things = ObjectCache(MACHINES, told.append)
    for thing in (machine("a", 5), machine("b", 6), machine("made-since", 9)):
        things.put(thing)

    things.replace([machine("b", 6)], "8")

    assert held_by(things) == {"b": "6", "made-since": "9"}
    assert [one["metadata"]["name"] for one in told] == ["a", "b", "made-since", "a"]


def test_what_has_lost_its_last_finalizer_is_gone() -> None:
    things = ObjectCache(MACHINES, lambda _: None)
    things.put(machine("a", 5, finalizers=["x"], deletionTimestamp="2027-01-15T08:00:00Z"))
    assert held_by(things) == {"a": "5"}

    things.put(machine("a", 6, deletionTimestamp="2027-01-15T08:00:00Z"))

    assert held_by(things) == {}


def test_a_namespace_that_goes_is_there_until_it_is_gone() -> None:
    things = ObjectCache(NAMESPACES, lambda _: None)
    about = {"name": "n", "resourceVersion": "1", "deletionTimestamp": "2027-01-15T08:00:00Z"}

    things.put({"metadata": about})

    assert things.get("", "n") is not None


# --- kubeconfigs ------------------------------------------------------------------------------

_CONTEXT = (
    "current-context: a\n"
    "contexts: [{name: a, context: {cluster: c, user: u}}]\n"
    "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\n"
)


def test_a_token_file_is_read_each_time(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text(_CONTEXT + "users: [{name: u, user: {tokenFile: token}}]")
    (tmp_path / "token").write_text("one\n")
    access = read_access(config)
    assert access.headers() == {"Authorization": "Bearer one"}

    (tmp_path / "token").write_text("two")

    assert access.headers() == {"Authorization": "Bearer two"}


@pytest.mark.parametrize(
    "text, why",
    [
        ("[", "not YAML"),
        ("{}", "no context"),
        (_CONTEXT, "no user 'u'"),
        (_CONTEXT + "users: [{name: u, user: {exec: {command: x}}}]", "plugin"),
        (_CONTEXT.replace("http:", "ftp:") + "users: [{name: u, user: {}}]", "URL"),
        (
            _CONTEXT.replace("http:", "https:")
            + "users: [{name: u, user: {client-certificate-data: '%'}}]",
            "base64",
        ),
    ],
)
def test_a_kubeconfig_that_is_of_no_use(tmp_path: Path, text: str, why: str) -> None:
    config = tmp_path / "config"
    config.write_text(text)

    with pytest.raises(BadKubeconfig, match=why):
        read_access(config)


def test_a_kubeconfig_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BadKubeconfig, match="cannot read"):
        read_access(tmp_path / "none")


# --- whom it knows ----------------------------------------------------------------------------

ALLOWED = {"aiohttp", "cryptography", "msgspec", "yaml"}


def strangers(source: str) -> set[str]:
    """The modules a file imports that the player must not know."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    return {
        name
        for name in found
        if not name.startswith("boatyard.fakes.hypershift")
        and name.partition(".")[0] not in {*sys.stdlib_module_names, *ALLOWED}
    }


def test_it_shares_no_module_with_the_rest_of_the_house() -> None:
    files = list(Path(hypershift.__file__).parent.rglob("*.py"))

    assert len(files) > 10
    assert {name for file in files for name in strangers(file.read_text())} == set()


@pytest.mark.parametrize(
    "planted", ["from boatyard.kube.client import KubeClient", "import boatyard.platforms.port"]
)
def test_a_shared_module_would_be_found(planted: str) -> None:
    assert strangers(f"def late():\n    {planted}\n") != set()
