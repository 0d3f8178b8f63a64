"""The verbs against a server that answers as told: what is sent, shown and answered, and how it ends."""

from __future__ import annotations

import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest

from boatyard.app.main import main
from boatyard.cli import following
from boatyard.client import client as client_module
from boatyard.model.wire import message, services

ID = "0190c0de-0000-7000-8000-000000000001"


class FakeServer(grpc.GenericRpcHandler):
    """Answers each method with a function of its request; keeps what was asked."""

    def __init__(self):
        self.asked = []
        self.answers = {}
        self.server = grpc.server(ThreadPoolExecutor(4))
        self.server.add_generic_rpc_handlers((self,))
        self.address = f"127.0.0.1:{self.server.add_insecure_port('127.0.0.1:0')}"
        self.server.start()

    def service(self, details):
        service, _, method = details.method.removeprefix("/").partition("/")
        described = services()[service].methods_by_name[method]
        kinds = {
            "request_deserializer": message(described.input_type.full_name).FromString,
            "response_serializer": message(described.output_type.full_name).SerializeToString,
        }
        answer = message(described.output_type.full_name)
        short = f"{service.rpartition('.')[2]}/{method}"

        def call(request, context):
            self.asked.append((short, request))
            told = self.answers.get(short)
            if told is None:
                context.abort(grpc.StatusCode.UNIMPLEMENTED, f"{short} is not told")
            return told(request, context)

        if method in ("Watch", "Follow"):

            def stream(request, context):
                for fields in call(request, context):
                    yield answer(**fields)

            return grpc.unary_stream_rpc_method_handler(stream, **kinds)
        return grpc.unary_unary_rpc_method_handler(
            lambda request, context: answer(**(call(request, context) or {})), **kinds
        )

    def requests(self, short):
        return [request for method, request in self.asked if method == short]


@pytest.fixture
def server(tmp_path, monkeypatch):
    fake = FakeServer()
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("BOATYARD_ADDRESS", fake.address)
    monkeypatch.setenv("BOATYARD_TOKEN", "a-token")
    monkeypatch.setattr(client_module, "_FIRST_PAUSE", 0.01)
    monkeypatch.chdir(tmp_path)
    yield fake
    fake.server.stop(None).wait()


def cluster(name="web-1", **spec):
    return {
        "id": ID,
        "metadata": {"name": name, "tenant": "acme", "version": 3, "generation": 1},
        "spec": {
            "template": {"id": "small", "name": "small"},
            "node_sets": {"compute": {"size": 3}},
        }
        | spec,
        "status": {"state": 2, "ready_nodes": {"compute": 3}},
    }


def step(name, state, **fields):
    return {"name": name, "state": state} | fields


def explanation(state, *steps, **fields):
    return {
        "explanation": {"cluster": ID, "name": "web-1", "state": state, "steps": steps} | fields
    }


BUSY = explanation("PROGRESSING", step("hosts", 2))
DONE = explanation("READY", step("hosts", 4, detail="n1"))
FAILED = explanation(
    "FAILED",
    step("hosts", 5, message="no such host type", remedy="order another"),
    blocked_by="hosts",
)


def listing(*items):
    return lambda request, context: {"size": len(items), "total": len(items), "items": items}


def gone(**receipt):
    return {
        "explanation": {
            "cluster": ID,
            "name": "web-1",
            "state": "DELETING",
            "gone": True,
            "receipt": receipt or {"gone": [{"kind": "host", "name": "n1"}]},
        }
    }


@pytest.fixture
def ordering(server):
    """A server that takes an order and finishes it in two looks."""
    server.answers |= {
        "ClusterTemplates/List": listing({"id": "small", "metadata": {"name": "small"}}),
        "Clusters/Create": lambda request, context: {"object": cluster()},
        "Clusters/Get": lambda request, context: {"object": cluster()},
        "Clusters/List": listing(cluster()),
        "Clusters/Update": lambda request, context: {"object": cluster()},
        "Clusters/Delete": lambda request, context: {},
        "Orders/Explain": lambda request, context: DONE,
        "Orders/Follow": lambda request, context: [BUSY, DONE],
        "Orders/Retry": lambda request, context: {},
    }
    return server


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
    monkeypatch.setattr(following, "STALE_SECONDS", 0.1)
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


# --- lists ------------------------------------------------------------------------------------


def test_get_shows_a_table(ordering, capsys):
    assert main(["get", "clusters"]) == 0
    assert capsys.readouterr().out == (
        "NAME   STATE  NODES  TEMPLATE  AGE  WAITING FOR\nweb-1  READY  3/3    small     -    -\n"
    )


def test_get_reads_every_page(ordering, capsys, monkeypatch):
    monkeypatch.setattr(client_module, "PAGE", 2)
    rows = [{"id": f"id-{n}", "metadata": {"name": f"c{n}"}} for n in range(5)]

    def page(request, context):
        after = request.filter.partition('this.id > "')[2].partition('"')[0]
        left = [row for row in rows if row["id"] > after]
        return {"size": min(2, len(left)), "total": len(left), "items": left[: request.limit]}

    ordering.answers["Clusters/List"] = page
    assert main(["get", "clusters", "-o", "name"]) == 0
    assert capsys.readouterr().out.split() == [f"cluster/c{n}" for n in range(5)]


def test_a_limited_list_says_so(ordering, capsys):
    ordering.answers["Clusters/List"] = lambda request, context: {
        "size": 1,
        "total": 120,
        "items": [cluster()],
    }
    assert main(["get", "clusters", "--limit", "1"]) == 0
    assert "Shown are 1 of 120" in capsys.readouterr().err


@pytest.mark.parametrize("form", ["json", "yaml", "name", "wide", ""])
def test_no_form_of_output_shows_a_name_raw(ordering, capsys, form):
    hostile = "web\x1b[2J\x9b\u202e"
    ordering.answers["Clusters/List"] = listing(
        cluster(hostile) | {"status": {"conditions": [{"type": 1, "message": hostile}]}}
    )
    assert main(["get", "clusters", *(["-o", form] if form else [])]) == 0
    assert all(line.isprintable() for line in capsys.readouterr().out.splitlines())


def test_describe_shows_nothing_raw(ordering, capsys):
    hostile = "\x1b[2J\u202e"
    bad = cluster(hostile)
    bad["metadata"] |= {"labels": {hostile: hostile}, "creator": hostile}
    bad["spec"]["node_sets"] = {hostile: {"size": 1}}
    ordering.answers["Clusters/List"] = listing(bad)
    assert main(["describe", "cluster", ID]) == 0
    assert all(line.isprintable() for line in capsys.readouterr().out.splitlines())


def test_get_one_as_json_is_one_object_and_more_is_a_list(ordering, capsys):
    assert main(["get", "cluster", "web-1", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["metadata"]["name"] == "web-1"
    assert main(["get", "clusters", "-o", "json"]) == 0
    assert isinstance(json.loads(capsys.readouterr().out), list)


def test_watch_shows_rows_then_changes_and_resumes_after_the_last_event(ordering, capsys):
    tries = iter(range(3))

    def watch(request, context):
        match next(tries):
            case 0:
                yield {"event": {"id": "e1", "type": 2, "cluster": cluster()}}  # listed already
                newer = cluster()
                newer["metadata"] = newer["metadata"] | {"version": 4}
                yield {"event": {"id": "e2", "type": 2, "cluster": newer}}
                context.abort(grpc.StatusCode.UNAVAILABLE, "going away")
            case 1:
                yield {"event": {"id": "e3", "type": 3, "cluster": cluster()}}
                context.abort(grpc.StatusCode.PERMISSION_DENIED, "enough")

    ordering.answers["Events/Watch"] = watch
    assert main(["get", "clusters", "-w"]) == 4
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert lines[-1].endswith("(gone)")
    assert [request.after for request in ordering.requests("Events/Watch")] == ["", "e2"]


# --- secrets and sessions ---------------------------------------------------------------------


def test_a_kubeconfig_is_written_for_its_owner_only(ordering, tmp_path):
    ordering.answers["Clusters/GetKubeconfig"] = lambda request, context: {
        "kubeconfig": "secret: 1"
    }
    assert main(["kubeconfig", "web-1", "-o", "k.yaml"]) == 0
    path = tmp_path / "k.yaml"
    assert path.read_text() == "secret: 1\n"
    assert path.stat().st_mode & 0o777 == 0o600


def test_on_a_terminal_a_kubeconfig_goes_to_a_file(ordering, tmp_path, capsys, monkeypatch):
    ordering.answers["Clusters/GetKubeconfig"] = lambda request, context: {
        "kubeconfig": "secret: 1"
    }
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert main(["kubeconfig", "web-1"]) == 0
    assert (tmp_path / "web-1.kubeconfig").exists()
    assert "secret" not in capsys.readouterr().out


def test_a_password_is_not_shown_on_a_terminal_unless_asked(ordering, capsys, monkeypatch):
    ordering.answers["Clusters/GetPassword"] = lambda request, context: {"password": "hunter2"}
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert main(["password", "web-1"]) == 2
    assert "hunter2" not in capsys.readouterr().out
    assert main(["password", "web-1", "-o", "-"]) == 0
    assert capsys.readouterr().out == "hunter2\n"


def test_login_keeps_nothing_when_the_server_refuses(server, capsys, tmp_path):
    def refuse(request, context):
        context.abort(grpc.StatusCode.UNAUTHENTICATED, "the token is not valid")

    server.answers |= {
        "Capabilities/Get": lambda request, context: {},
        "ClusterTemplates/List": refuse,
    }
    assert main(["login", server.address, "--token", "junk"]) == 4
    assert not (tmp_path / "boatyard" / "config.json").exists()


def test_login_then_logout(server, capsys, tmp_path, monkeypatch):
    server.answers |= {
        "Capabilities/Get": lambda request, context: {},
        "ClusterTemplates/List": listing(),
    }
    assert main(["login", server.address, "--token", "good"]) == 0
    kept = json.loads((tmp_path / "boatyard" / "config.json").read_text())
    assert (kept["address"], kept["token"]) == (server.address, "good")
    monkeypatch.delenv("BOATYARD_ADDRESS")
    monkeypatch.delenv("BOATYARD_TOKEN")
    assert main(["whoami"]) == 0
    assert "found by: login" in capsys.readouterr().out
    assert main(["logout"]) == 0
    assert main(["whoami"]) == 2


def test_nothing_listening_is_said_in_one_line(server, capsys):
    server.server.stop(None).wait()
    assert main(["get", "clusters"]) == 1
    assert f"nothing answers at {server.address}" in capsys.readouterr().err
