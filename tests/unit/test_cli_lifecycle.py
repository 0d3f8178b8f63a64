"""Hibernate, resume, upgrade, backup and restore: what is sent, shown and answered, and how each ends."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime

import grpc
import pytest

from boatyard.app.main import main
from boatyard.cli.backups import default_backup_name
from boatyard.cli.text_format import format_size
from tests.support.scripted_server import BUSY, DONE, FAILED, ID, cluster, explanation, listing

RESTS = explanation("HIBERNATED")
BACKUP_ID = "0190c0de-0000-7000-8000-0000000000b1"


def a_backup(state=2, **status):
    told = {"state": state, "bytes": 4404019, "version": "1.36.3", "cluster_name": "web-1"}
    return {
        "id": BACKUP_ID,
        "metadata": {"name": "before", "tenant": "acme", "version": 1},
        "spec": {"cluster": ID},
        "status": told | status,
    }


@pytest.fixture
def asleep(ordering):
    ordering.answers["Clusters/List"] = listing(cluster(rest=1))
    ordering.answers["Orders/Explain"] = lambda request, context: RESTS
    return ordering


@pytest.fixture
def copying(ordering):
    looks = iter([a_backup(1, message="The backup is being written."), a_backup(2)])
    ordering.answers |= {
        "Backups/Create": lambda request, context: {"object": a_backup(1, bytes=0)},
        "Backups/Get": lambda request, context: {"object": next(looks)},
        "Backups/List": listing(a_backup()),
        "Backups/Delete": lambda request, context: {},
    }
    return ordering


def change_of(server):
    (sent,) = server.requests("Clusters/Update")
    assert sent.object.id == ID
    return sent.object.spec, list(sent.update_mask.paths)


# --- rest ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("words, rest", [([], 1), (["--deep"], 2)])
def test_hibernate_sends_the_rest_and_follows_it(ordering, capsys, words, rest):
    ordering.answers["Orders/Follow"] = lambda request, context: [BUSY, RESTS]
    assert main(["hibernate", "cluster", "web-1", *words]) == 0
    spec, paths = change_of(ordering)
    assert (spec.rest, paths) == (rest, ["spec.rest"])
    assert capsys.readouterr().out.splitlines() == [
        "Putting cluster web-1 to rest.",
        "web-1: hosts running",
        "web-1: going to rest",
        "web-1: hibernated",
        "Next: boatyard resume cluster web-1",
    ]


def test_what_rests_deeper_is_left_alone(asleep, capsys):
    asleep.answers["Clusters/List"] = listing(cluster(rest=2))
    asleep.answers["Orders/Follow"] = lambda request, context: [RESTS]
    assert main(["hibernate", "cluster", "web-1"]) == 0
    assert not asleep.requests("Clusters/Update")


def test_resume_wakes_and_follows(asleep, capsys):
    asleep.answers["Orders/Follow"] = lambda request, context: [BUSY, DONE]
    assert main(["resume", "cluster", "web-1"]) == 0
    spec, paths = change_of(asleep)
    assert (spec.rest, paths) == (0, ["spec.rest"])
    out = capsys.readouterr().out
    assert "web-1: waking up" in out
    assert out.endswith("web-1: ready\n")


def test_waiting_for_ready_on_a_cluster_that_rests_says_how_to_wake_it(asleep, capsys):
    asleep.answers["Orders/Follow"] = lambda request, context: [RESTS]
    assert main(["wait", "cluster", "web-1"]) == 1
    assert "boatyard resume cluster web-1" in capsys.readouterr().err
    assert main(["wait", "cluster", "web-1", "--for", "hibernated"]) == 0


@pytest.mark.parametrize("verb, hint", [
    (["hibernate"], "--for hibernated"),
    (["resume"], "--for ready"),
    (["upgrade", "--to", "1.36.3"], "--for ready"),
])  # fmt: skip
def test_no_wait_answers_at_once(ordering, capsys, verb, hint):
    ordering.answers["ClusterVersions/List"] = listing({"id": "v1"})
    name, *more = verb
    assert main([name, "cluster", "web-1", *more, "--no-wait"]) == 0
    assert not ordering.requests("Orders/Follow")
    assert capsys.readouterr().out.endswith(f"Next: boatyard wait cluster web-1 {hint}\n")


# --- upgrade ------------------------------------------------------------------------------------


def test_upgrade_finds_the_version_and_follows(ordering, capsys):
    running = cluster()
    running["status"]["version"] = "1.35.4"
    ordering.answers["Clusters/List"] = listing(running)
    ordering.answers["ClusterVersions/List"] = listing({"id": "v36", "spec": {"version": "1.36.3"}})
    assert main(["upgrade", "cluster", "web-1", "--to", "1.36.3"]) == 0
    spec, paths = change_of(ordering)
    assert (spec.version.id, paths) == ("v36", ["spec.version"])
    assert "Upgrading cluster web-1: 1.35.4 → 1.36.3" in capsys.readouterr().out


def test_an_upgrade_that_failed_ends_with_1(ordering, capsys):
    ordering.answers["ClusterVersions/List"] = listing({"id": "v36"})
    ordering.answers["Orders/Follow"] = lambda request, context: [BUSY, FAILED]
    assert main(["upgrade", "cluster", "web-1", "--to", "1.36.3"]) == 1


# --- backup -------------------------------------------------------------------------------------


def test_backup_waits_and_tells_the_size(copying, capsys):
    assert main(["backup", "cluster", "web-1", "--name", "before"]) == 0
    (sent,) = copying.requests("Backups/Create")
    assert (sent.object.metadata.name, sent.object.spec.cluster) == ("before", ID)
    assert capsys.readouterr().out.splitlines() == [
        "Taking backup before of cluster web-1.",
        "before: The backup is being written.",
        "Backup before is ready: 4.2 MiB, version 1.36.3.",
        "Next: boatyard restore cluster web-1 --backup before",
    ]


def test_backup_as_json_leaves_stdout_to_the_answer(copying, capsys):
    assert main(["backup", "cluster", "web-1", "-o", "json", "--folder", "/srv"]) == 0
    (sent,) = copying.requests("Backups/Create")
    assert sent.object.spec.folder == "/srv"
    shown = capsys.readouterr()
    assert json.loads(shown.out)["id"] == BACKUP_ID
    assert "is ready" in shown.err


def test_a_backup_that_failed_ends_with_1(copying, capsys):
    failed = a_backup(3, message="no room")
    copying.answers["Backups/Get"] = lambda request, context: {"object": failed}
    assert main(["backup", "cluster", "web-1", "--name", "before"]) == 1
    assert "backup before failed: no room" in capsys.readouterr().err


def test_a_backup_that_takes_too_long_ends_with_7(copying, capsys):
    copying.answers["Backups/Get"] = lambda request, context: {"object": a_backup(1)}
    assert main(["backup", "cluster", "web-1", "--name", "before", "--timeout", "0.3"]) == 7
    assert "boatyard get backups before" in capsys.readouterr().err


def test_a_backup_is_listed_described_and_deleted(copying, capsys):
    assert main(["get", "backups"]) == 0
    table = capsys.readouterr().out
    assert "before" in table
    assert "4.2 MiB" in table
    assert main(["describe", "backup", "before"]) == 0
    told = capsys.readouterr().out
    assert f"web-1 ({ID})" in told
    assert "--from-backup before" in told

    def gone(request, context):
        context.abort(grpc.StatusCode.NOT_FOUND, "there is none")

    copying.answers["Backups/Get"] = gone
    assert main(["delete", "backup", "before"]) == 0
    (sent,) = copying.requests("Backups/Delete")
    assert sent.id == BACKUP_ID
    assert capsys.readouterr().out.endswith("Backup before is gone.\n")


@pytest.mark.parametrize("name", ["web-1", "x" * 63, "Web_1", "a-" * 30])
def test_a_name_is_made_of_the_cluster_and_the_moment(name):
    made = default_backup_name(name, datetime(2026, 3, 1, 12, 30, 5, tzinfo=UTC))
    assert made.endswith("-20260301-123005")
    assert len(made) <= 63
    assert "--" not in made
    assert made == made.lower()


@pytest.mark.parametrize("count, words", [
    (0, "0 B"), (812, "812 B"), (4096, "4.0 KiB"), (4404019, "4.2 MiB"), (2**60, "1048576.0 TiB")
])  # fmt: skip
def test_sizes_for_people(count, words):
    assert format_size(count) == words


# --- restore ------------------------------------------------------------------------------------


class Typed(io.StringIO):
    """What somebody types at a terminal."""

    def isatty(self):
        return True


def test_restore_is_asked_for_by_name_and_followed(copying, capsys):
    assert main(["restore", "cluster", "web-1", "--backup", "before", "--yes"]) == 0
    spec, paths = change_of(copying)
    assert (spec.restore.backup, paths) == (BACKUP_ID, ["spec.restore"])
    assert "web-1: restoring" in capsys.readouterr().out


def test_in_a_script_restore_wants_to_be_meant(copying, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("web-1\n"))
    assert main(["restore", "cluster", "web-1", "--backup", "before"]) == 2
    assert "--yes" in capsys.readouterr().err
    assert not copying.requests("Clusters/Update")


@pytest.mark.parametrize("typed, code, calls", [("web-1\n", 0, 1), ("yes\n", 2, 0), ("", 2, 0)])
def test_at_a_terminal_restore_asks_for_the_name(copying, capsys, monkeypatch, typed, code, calls):
    monkeypatch.setattr("sys.stdin", Typed(typed))
    assert main(["restore", "cluster", "web-1", "--backup", "before"]) == code
    assert len(copying.requests("Clusters/Update")) == calls
    assert "is lost" in capsys.readouterr().err


def test_create_begins_with_a_backup(copying):
    words = ["create", "cluster", "web-2", "--template", "small", "--from-backup", "before"]
    assert main([*words, "--no-wait"]) == 0
    (sent,) = copying.requests("Clusters/Create")
    assert sent.object.spec.restore.backup == BACKUP_ID
    assert not sent.object.spec.version.id, "the server takes the backup's"
