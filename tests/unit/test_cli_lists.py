"""The verbs that show: lists, one object, secrets and the session; and how each ends."""

from __future__ import annotations

import json

import grpc
import pytest

from boatyard.app.main import main
from boatyard.client import client as client_module
from tests.support.scripted_server import ID, cluster, listing


def test_get_shows_a_table(ordering, capsys):
    assert main(["get", "clusters"]) == 0
    assert capsys.readouterr().out == (
        "NAME   STATE  NODES  TEMPLATE  AGE  WAITING FOR\nweb-1  READY  3/3    small     -    -\n"
    )


def test_get_reads_every_page(ordering, capsys, monkeypatch):
    monkeypatch.setattr(client_module, "PAGE_SIZE", 2)
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


# --- sessions -------------------------------------------------------------------------------------


def test_login_keeps_nothing_when_the_server_refuses(scripted_server, capsys, tmp_path):
    def refuse(request, context):
        context.abort(grpc.StatusCode.UNAUTHENTICATED, "the token is not valid")

    scripted_server.answers |= {
        "Capabilities/Get": lambda request, context: {},
        "ClusterTemplates/List": refuse,
    }
    assert main(["login", scripted_server.address, "--token", "junk"]) == 4
    assert not (tmp_path / "boatyard" / "config.json").exists()


def test_login_then_logout(scripted_server, capsys, tmp_path, monkeypatch):
    scripted_server.answers |= {
        "Capabilities/Get": lambda request, context: {},
        "ClusterTemplates/List": listing(),
    }
    assert main(["login", scripted_server.address, "--token", "good"]) == 0
    kept = json.loads((tmp_path / "boatyard" / "config.json").read_text())
    assert (kept["address"], kept["token"]) == (scripted_server.address, "good")
    monkeypatch.delenv("BOATYARD_ADDRESS")
    monkeypatch.delenv("BOATYARD_TOKEN")
    assert main(["whoami"]) == 0
    assert "found by: login" in capsys.readouterr().out
    assert main(["logout"]) == 0
    assert main(["whoami"]) == 2


def test_nothing_listening_is_said_in_one_line(scripted_server, capsys):
    scripted_server.server.stop(None).wait()
    assert main(["get", "clusters"]) == 1
    assert f"nothing answers at {scripted_server.address}" in capsys.readouterr().err
