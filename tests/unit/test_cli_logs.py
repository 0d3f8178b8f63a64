"""`boatyard logs`: what is asked, how it is shown, and how it goes on and ends."""

from __future__ import annotations

import io
import os
from datetime import UTC, datetime

import grpc
import pytest

from boatyard.app.main import main
from boatyard.cli.logs import LogPrinter, format_log_line
from boatyard.cli.tree import to_plain_text
from boatyard.model.generated.boatyard import LogLine
from tests.support.scripted_server import ID, cluster, listing

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def told(id, kind="ok", task="", text="", **more):
    line = {"id": str(id), "run": "post_install", "part": "post_install", "attempt": 1}
    line |= {"kind": kind, "task": task, "text": text, "at": {"seconds": int(AT.timestamp())}}
    return {"line": line | more}


STORY = [
    told(1, "task", "make a namespace"),
    told(2, "changed", "make a namespace"),
    told(3, "task", "wait"),
    told(4, "output", "wait", "not yet: 1 of 3 tries"),
    told(5, "ok", "wait", "it is there"),
    told(6, "end", text="succeeded"),
]


@pytest.fixture
def telling(scripted_server, monkeypatch):
    monkeypatch.setenv("TZ", "UTC")
    scripted_server.answers["Clusters/List"] = listing(cluster())
    scripted_server.answers["RunLogs/Watch"] = lambda request, context: STORY
    return scripted_server


def test_a_story_is_told_line_by_line(telling, capsys):
    assert main(["logs", "cluster", "web-1"]) == 0
    (asked,) = telling.requests("RunLogs/Watch")
    assert (asked.cluster, asked.run, asked.follow, asked.after) == (ID, "", False, "")
    out = capsys.readouterr().out.splitlines()
    assert [line[21:] for line in out] == [
        "post_install  changed  make a namespace",
        "post_install  task     wait",
        "post_install  output   wait: not yet: 1 of 3 tries",
        "post_install  ok       wait: it is there",
        "post_install  end      succeeded",
    ]
    assert all(line.startswith("2026-01-02 ") for line in out)


def test_whoever_follows_is_told_when_a_task_begins(telling, capsys):
    assert main(["logs", "cluster", "web-1", "-f", "--run", "post_install"]) == 0
    (asked,) = telling.requests("RunLogs/Watch")
    assert (asked.run, asked.follow) == ("post_install", True)
    out = capsys.readouterr().out.splitlines()
    assert out[0].endswith("task     make a namespace")
    assert len(out) == 6


def test_the_task_that_runs_now_is_the_last_line(telling, capsys):
    telling.answers["RunLogs/Watch"] = lambda request, context: STORY[:3]
    assert main(["logs", "cluster", "web-1"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].endswith("task     wait")


def test_after_a_lost_connection_it_goes_on_where_it_was(telling, capsys):
    def answer(request, context):
        after = int(request.after or 0)
        yield from STORY[after : after + 2]
        if after < 4:
            context.abort(grpc.StatusCode.UNAVAILABLE, "gone away")

    telling.answers["RunLogs/Watch"] = answer
    assert main(["logs", "cluster", "web-1", "-f"]) == 0
    assert [one.after for one in telling.requests("RunLogs/Watch")] == ["", "2", "4"]
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 6
    assert err.count("connection lost, trying again") == 2


def test_without_following_a_lost_connection_is_an_error(telling, capsys):
    def answer(request, context):
        context.abort(grpc.StatusCode.UNAVAILABLE, "gone away")

    telling.answers["RunLogs/Watch"] = answer
    assert main(["logs", "cluster", "web-1"]) == 1
    assert "gone away" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words, expected",
    [
        ([], "web-1: no run of its template has told anything"),
        (["--run", "scale"], "web-1: no run called scale has told anything"),
    ],
)
def test_an_empty_story_says_so_in_one_line(telling, capsys, words, expected):
    telling.answers["RunLogs/Watch"] = lambda request, context: []
    assert main(["logs", "cluster", "web-1", *words]) == 0
    out, err = capsys.readouterr()
    assert (out, err.splitlines()) == ("", [expected])


def test_lines_that_are_gone_are_mentioned(telling, capsys):
    telling.answers["RunLogs/Watch"] = lambda request, context: [{"missing": 12}, *STORY]
    assert main(["logs", "cluster", "web-1"]) == 0
    assert capsys.readouterr().err.splitlines() == ["12 lines before this are no longer kept"]


def test_a_cluster_that_is_gone_is_asked_for_by_the_name_that_was_typed(telling):
    telling.answers["Clusters/List"] = listing()
    assert main(["logs", "cluster", "web-1"]) == 0
    (asked,) = telling.requests("RunLogs/Watch")
    assert asked.cluster == "web-1"


def test_what_is_nowhere_is_not_found(telling, capsys):
    telling.answers["Clusters/List"] = listing()

    def answer(request, context):
        context.abort(grpc.StatusCode.NOT_FOUND, "there is no cluster 'web-1'")

    telling.answers["RunLogs/Watch"] = answer
    assert main(["logs", "cluster", "web-1"]) == 3
    assert "there is no cluster" in capsys.readouterr().err


def a_line(kind="ok", **fields):
    return LogLine(part="install", run="role", kind=kind, **fields)


def shown(line):
    return [to_plain_text(one)[21:] for one in format_log_line(line)]


def test_words_of_several_lines_stand_below_their_task():
    line = a_line("failed", task="ask", text="no\nsuch pool\n", attempt=2)
    assert shown(line) == [
        "install #2    failed   ask:",
        " " * 23 + "no",
        " " * 23 + "such pool",
    ]


def test_a_role_cannot_move_the_cursor():
    line = a_line("output", task="\x1b[2J", text="a\x1b]0;x\x07\u202eb")
    assert "\x1b" not in "".join(shown(line))
    assert "\u202e" not in "".join(shown(line))


class LogsTerminal(io.StringIO):
    def isatty(self):
        return True


def test_colours_are_for_terminals_only(monkeypatch):
    monkeypatch.setitem(os.environ, "TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    for stream, expected in ((LogsTerminal(), True), (io.StringIO(), False)):
        page = LogPrinter(stream, at_once=True)
        page.add(a_line("changed", task="one [bold]"))
        assert ("\x1b[" in stream.getvalue()) is expected
        assert "one [bold]" in stream.getvalue(), "names are no markup"
