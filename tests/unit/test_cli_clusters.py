"""The verbs that change a cluster: what is sent, shown and answered, and how each ends."""

from __future__ import annotations

import json
import os
import threading

import grpc
import pytest

from boatyard.app.main import main
from boatyard.cli import cluster_progress
from tests.support.scripted_server import (
    BUSY,
    DONE,
    FAILED,
    ID,
    cluster,
    explanation,
    gone,
    listing,
    step,
)

CREATE = ["create", "cluster", "web-1", "--template", "small", "--node-set", "compute=3"]


def test_create_sends_the_order_and_follows_it(ordering, capsys):
    assert main(CREATE) == 0
    (sent,) = ordering.requests("Clusters/Create")
    assert sent.object.metadata.name == "web-1"
    assert sent.object.spec.template.id == "small"
    assert sent.object.spec.node_sets["compute"].size == 3
    assert capsys.readouterr().out.splitlines() == [
        f"Ordered cluster web-1 ({ID}).",
        "web-1: hosts running",
        "web-1: creating",
        "web-1: hosts done: n1",
        "web-1: ready",
        "Next: boatyard kubeconfig web-1",
    ]


def test_no_wait_answers_at_once(ordering, capsys):
    assert main([*CREATE, "--no-wait"]) == 0
    assert not ordering.requests("Orders/Follow")
    assert "boatyard wait cluster web-1" in capsys.readouterr().out


def test_with_an_output_form_stdout_holds_nothing_else(ordering, capsys):
    assert main([*CREATE, "-o", "json"]) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)["id"] == ID
    assert "web-1: ready" in shown.err


def test_a_failed_order_ends_with_1_and_its_remedy(ordering, capsys):
    ordering.answers["Orders/Follow"] = lambda request, context: [BUSY, FAILED]
    assert main(CREATE) == 1
    assert "failed at hosts: no such host type order another." in capsys.readouterr().err


def test_a_quarantined_step_is_not_waited_for(ordering, capsys):
    stuck = explanation("PROGRESSING", step("hosts", 6, message="internal error 1"))
    ordering.answers["Orders/Follow"] = lambda request, context: [stuck]
    assert main(CREATE) == 1


def test_an_order_without_room_ends_with_6(ordering):
    full = explanation("FAILED", step("hosts", 5, reason="QuotaUsedUp", message="no quota"))
    ordering.answers["Orders/Follow"] = lambda request, context: [full]
    assert main(CREATE) == 6


def test_an_order_that_takes_too_long_ends_with_7_and_goes_on(ordering, capsys):
    release = threading.Event()

    def follow(request, context):
        yield BUSY
        release.wait(30)

    ordering.answers["Orders/Follow"] = follow
    assert main([*CREATE, "--timeout", "0.3"]) == 7
    release.set()
    assert "boatyard wait cluster web-1 --for ready" in capsys.readouterr().err


@pytest.mark.parametrize("blocked", [
    pytest.param({"blocked_by": "placement"}, id="no hub has room"),
    pytest.param(
        {"blocked_by": "hosts", "steps": [step("hosts", 3, reason="NoFreeHost")]}, id="no host is free"
    ),
])  # fmt: skip
def test_an_order_still_waiting_for_room_ends_with_6_and_goes_on(ordering, capsys, blocked):
    release = threading.Event()

    def follow(request, context):
        found = explanation("PROGRESSING")
        found["explanation"].update(blocked)
        yield found
        release.wait(30)

    ordering.answers["Orders/Follow"] = follow
    assert main([*CREATE, "--timeout", "0.3"]) == 6
    release.set()
    told = capsys.readouterr().err
    assert "waiting for room" in told
    assert "boatyard wait cluster web-1 --for ready" in told


def test_a_lost_connection_is_taken_up_again(ordering, capsys):
    tries = iter(range(10))

    def follow(request, context):
        if next(tries) < 2:
            yield BUSY
            context.abort(grpc.StatusCode.UNAVAILABLE, "going away")
        yield DONE

    ordering.answers["Orders/Follow"] = follow
    assert main(CREATE) == 0
    out = capsys.readouterr().out
    assert out.count("connection lost") == 2
    assert out.count("hosts running") == 1


def test_interrupted_it_says_that_the_order_goes_on(ordering, capsys):
    def follow(request, context):
        yield BUSY
        os.kill(os.getpid(), 2)
        threading.Event().wait(1)

    ordering.answers["Orders/Follow"] = follow
    assert main(CREATE) == 130
    assert (
        "goes on without you. Watch it again: boatyard wait cluster web-1"
        in capsys.readouterr().out
    )


def test_an_unknown_template_ends_with_3_and_names_those_there_are(ordering, capsys):
    def templates(request, context):
        rows = [] if request.filter else [{"id": "small", "metadata": {"name": "small"}}]
        return {"size": len(rows), "total": len(rows), "items": rows}

    ordering.answers["ClusterTemplates/List"] = templates
    assert main(["create", "cluster", "x", "-t", "huge"]) == 3
    assert "there are: small" in capsys.readouterr().err


def test_scale_changes_the_size_and_nothing_else(ordering, capsys):
    assert main(["scale", "cluster", "web-1", "compute=5"]) == 0
    (sent,) = ordering.requests("Clusters/Update")
    assert list(sent.update_mask.paths) == ["spec.node_sets.compute.size"]
    assert sent.object.spec.node_sets["compute"].size == 5
    assert "compute 3 → 5" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words", [["--node-set", "compute", "--size", "5"], ["--node-set", "compute=5"]]
)
def test_scale_understands_both_ways_to_say_it(ordering, words):
    assert main(["scale", "cluster", "web-1", *words, "--no-wait"]) == 0
    assert ordering.requests("Clusters/Update")[0].object.spec.node_sets["compute"].size == 5


def test_scale_is_not_content_with_what_was_true_before(ordering, capsys, monkeypatch):
    ordering.answers["Orders/Follow"] = lambda request, context: [DONE, BUSY, FAILED]
    assert main(["scale", "cluster", "web-1", "compute=5"]) == 1


def test_scale_takes_an_old_answer_that_stays(ordering, monkeypatch):
    monkeypatch.setattr(cluster_progress, "STALE_SECONDS", 0.1)
    release = threading.Event()

    def follow(request, context):
        yield DONE
        release.wait(30)

    ordering.answers["Orders/Follow"] = follow
    assert main(["scale", "cluster", "web-1", "compute=5"]) == 0
    release.set()


def test_scale_of_an_unknown_set_ends_with_3(ordering, capsys):
    assert main(["scale", "cluster", "web-1", "gpu=5"]) == 3
    assert "it has: compute" in capsys.readouterr().err


def test_delete_shows_the_receipt(ordering, capsys):
    ordering.answers["Orders/Follow"] = lambda request, context: [
        explanation("DELETING", step("hosts", 7)),
        gone(),
    ]
    assert main(["delete", "cluster", "web-1"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == [
        "web-1: hosts releasing",
        "web-1: deleting",
        "web-1: deleted",
        "receipt: web-1 deleted, 1 thing taken back, nothing left",
        "  gone  host  n1",
    ]


def test_a_delete_that_ended_while_we_were_cut_off_is_still_told(ordering, capsys):
    tries = iter(range(10))

    def follow(request, context):
        if next(tries):
            context.abort(grpc.StatusCode.NOT_FOUND, "no such cluster")
        yield explanation("DELETING", step("hosts", 7))

    ordering.answers["Orders/Follow"] = follow
    ordering.answers["Orders/GetReceipt"] = lambda request, context: {
        "receipt": {"gone": [{"kind": "host", "name": "n1"}]}
    }
    assert main(["delete", "cluster", "web-1"]) == 0
    assert "gone  host  n1" in capsys.readouterr().out


def test_what_is_not_there_ends_with_3(ordering, capsys):
    ordering.answers["Clusters/List"] = listing()
    for argv in (
        ["delete", "cluster", "x"],
        ["describe", "cluster", "x"],
        ["get", "clusters", "x"],
        ["explain", "cluster", "x"],
        ["kubeconfig", "x"],
        ["wait", "cluster", "x"],
    ):
        assert main(argv) == 3, argv
    assert not ordering.requests("Clusters/Delete")


def test_two_of_the_same_name_are_not_guessed_between(ordering, capsys):
    other = cluster() | {"id": "0190-other"}
    ordering.answers["Clusters/List"] = listing(cluster(), other)
    assert main(["delete", "cluster", "web-1"]) == 5
    assert "0190-other" in capsys.readouterr().err


def test_a_name_cannot_leave_its_quotes_in_a_filter(ordering):
    main(["get", "clusters", 'x"] || true || this.id in ["'])
    (asked,) = ordering.requests("Clusters/List")
    assert '\\"] || true' in asked.filter


def test_retry_waits_for_something_newer_than_the_failure(ordering):
    ordering.answers["Orders/Explain"] = lambda request, context: FAILED
    ordering.answers["Orders/Follow"] = lambda request, context: [FAILED, BUSY, DONE]
    assert main(["retry", "cluster", "web-1"]) == 0
    assert ordering.requests("Orders/Retry")[0].cluster == ID
