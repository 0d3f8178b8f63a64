"""What `boatyard kubeconfig` and `password` do with a secret, and with the kubeconfig one already has."""

from __future__ import annotations

import os
import stat
import threading
from datetime import UTC, datetime

import grpc
import pytest
import yaml

from boatyard.app.main import main
from boatyard.client import kubeconfig_file
from boatyard.client.kubeconfig_file import edit_kubeconfig, find_kubeconfig
from boatyard.model.errors import Conflict, Refused
from tests.parts.test_kubeconfig_merge import received
from tests.support.scripted_server import ID, cluster, gone, listing

ENDS = datetime(2026, 11, 16, 6, 0, 0, tzinfo=UTC)


@pytest.fixture
def environment(ordering, monkeypatch):
    """A server with one cluster, and a person without a kubeconfig."""
    monkeypatch.delenv("KUBECONFIG", raising=False)
    ordering.answers["Clusters/GetKubeconfig"] = lambda request, context: {
        "kubeconfig": received(token="hunter2")
    }
    ordering.answers["Clusters/GetPassword"] = lambda request, context: {"password": "hunter2"}
    ordering.answers["Access/Issue"] = lambda request, context: {
        "kubeconfig": received(token="hunter2"),
        "expires_at": ENDS,
        "user": f"boatyard:{request.user or 'ann'}",
    }
    return ordering


def mode(path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def shown(path):
    return yaml.safe_load(path.read_text())


def test_it_goes_into_the_kubeconfig_in_the_home_directory(environment, tmp_path, capsys):
    assert main(["kubeconfig", "web-1"]) == 0
    path = tmp_path / ".kube" / "config"
    assert [one["name"] for one in shown(path)["contexts"]] == ["boatyard-web-1"]
    assert (mode(path), mode(path.parent)) == (0o600, 0o700)
    assert sorted(one.name for one in path.parent.iterdir()) == ["config"], "no lock, no draft"
    told = capsys.readouterr().out
    assert told.splitlines() == [
        f"Merged into {path} as context boatyard-web-1, readable by you only.",
        "Next: kubectl --context boatyard-web-1 get nodes",
    ]
    assert "hunter2" not in told, "also in a pipe a secret is only printed when asked for"


def test_kubeconfig_names_the_file_and_the_flags_the_context(
    environment, tmp_path, monkeypatch, capsys
):
    first, second = tmp_path / "first", tmp_path / "second"
    monkeypatch.setenv("KUBECONFIG", f":{first}:{second}")
    assert main(["kubeconfig", "web-1", "--context", "my web", "--switch"]) == 0
    assert shown(first)["current-context"] == "my web"
    assert not second.exists()
    assert capsys.readouterr().out.endswith("Next: kubectl get nodes\n")


def test_with_dash_it_is_printed_and_nothing_else_is(environment, tmp_path, capsys):
    assert main(["kubeconfig", "web-1", "-o", "-"]) == 0
    assert capsys.readouterr().out == received(token="hunter2")
    assert not (tmp_path / ".kube").exists()


def test_into_a_file_it_goes_as_it_came(environment, tmp_path, capsys):
    assert main(["kubeconfig", "web-1", "-o", "web 1.yaml"]) == 0
    path = tmp_path / "web 1.yaml"
    assert (path.read_text(), mode(path)) == (received(token="hunter2"), 0o600)
    assert "kubectl --kubeconfig 'web 1.yaml' get nodes" in capsys.readouterr().out
    assert not (tmp_path / ".kube").exists()


@pytest.mark.parametrize("words", [
    ["-o", "x", "--switch"], ["-o", "-", "--context", "x"], ["--remove", "-o", "x"],
    ["--remove", "--ttl", "1h"], ["--remove", "--switch"], ["--ttl", "soon"],
])  # fmt: skip
def test_flags_that_do_not_go_together_are_refused(environment, words):
    assert main(["kubeconfig", "web-1", *words]) == 2
    assert not environment.requests("Clusters/GetKubeconfig")
    assert not environment.requests("Access/Issue")


# --- issued for somebody ----------------------------------------------------------------------


@pytest.mark.parametrize("words, user, seconds, context", [
    (["--for", "bob", "--ttl", "1h"], "bob", 3600, "boatyard-web-1-bob"),
    (["--for", "bob"], "bob", None, "boatyard-web-1-bob"),
    (["--ttl", "90m"], "", 5400, "boatyard-web-1-ann"),
    (["--ttl", "100000d"], "", 2**31 - 1, "boatyard-web-1-ann"),
])  # fmt: skip
def test_one_is_issued_for_a_user(environment, tmp_path, capsys, words, user, seconds, context):
    assert main(["kubeconfig", "web-1", *words]) == 0
    (asked,) = environment.requests("Access/Issue")
    assert (asked.cluster, asked.user) == (ID, user)
    assert (asked.ttl_seconds if asked.HasField("ttl_seconds") else None) == seconds
    assert not environment.requests("Clusters/GetKubeconfig"), "the admin's is not touched"
    assert shown(tmp_path / ".kube" / "config")["contexts"][0]["name"] == context
    told = capsys.readouterr().out
    assert "valid until 2026-11-16 06:00:00 UTC." in told
    assert "hunter2" not in told


def test_one_issued_for_another_can_be_given_away_as_a_file(environment, tmp_path, capsys):
    assert main(["kubeconfig", "web-1", "--for", "bob", "-o", "bob.kubeconfig"]) == 0
    assert mode(tmp_path / "bob.kubeconfig") == 0o600
    assert "Issued to boatyard:bob" in capsys.readouterr().out
    assert main(["kubeconfig", "web-1", "--for", "bob", "-o", "-"]) == 0
    assert capsys.readouterr().out == received(token="hunter2")


def test_who_may_not_is_told_so(environment, capsys):
    def refuse(request, context):
        context.abort(grpc.StatusCode.FAILED_PRECONDITION, "a simulated cluster issues none")

    environment.answers["Access/Issue"] = refuse
    assert main(["kubeconfig", "web-1", "--for", "bob"]) == 5
    assert "a simulated cluster issues none" in capsys.readouterr().err


# --- the file that is already there -----------------------------------------------------------


def test_a_broken_kubeconfig_is_left_as_it_is(environment, tmp_path, capsys):
    path = tmp_path / ".kube" / "config"
    path.parent.mkdir()
    path.write_text("users: [hunter2")
    assert main(["kubeconfig", "web-1"]) == 2
    assert path.read_text() == "users: [hunter2"
    assert sorted(one.name for one in path.parent.iterdir()) == ["config"]
    assert "hunter2" not in capsys.readouterr().err


def test_a_context_of_others_is_left_as_it_is(environment, tmp_path, capsys):
    path = tmp_path / ".kube" / "config"
    path.parent.mkdir()
    text = "contexts: [{name: boatyard-web-1, context: {cluster: mine}}]\n"
    path.write_text(text)
    assert main(["kubeconfig", "web-1"]) == 5
    assert path.read_text() == text
    assert "--context" in capsys.readouterr().err


def test_comments_are_kept_in_a_copy(environment, tmp_path, capsys):
    path = tmp_path / ".kube" / "config"
    path.parent.mkdir()
    path.write_text("# my own\nkind: Config\n")
    path.chmod(0o644)
    assert main(["kubeconfig", "web-1"]) == 0
    copy = path.with_name("config.before-boatyard")
    assert copy.read_text() == "# my own\nkind: Config\n"
    assert (mode(path), mode(copy)) == (0o600, 0o600)
    assert str(copy) in capsys.readouterr().out
    assert main(["kubeconfig", "web-1"]) == 0
    assert str(copy) not in capsys.readouterr().out, "nothing is lost twice"


def test_a_link_stays_a_link(environment, tmp_path, monkeypatch):
    real = tmp_path / "dotfiles" / "kube"
    real.parent.mkdir()
    real.write_text("kind: Config\n")
    link = tmp_path / "config"
    link.symlink_to(real)
    monkeypatch.setenv("KUBECONFIG", str(link))
    assert main(["kubeconfig", "web-1"]) == 0
    assert link.is_symlink()
    assert shown(real)["contexts"]


@pytest.mark.parametrize("make", ["directory", "pipe", "device"])
def test_what_is_not_a_file_is_not_replaced(environment, tmp_path, monkeypatch, make):
    path = tmp_path / "odd"
    if make == "directory":
        path.mkdir()
    elif make == "pipe":
        os.mkfifo(path)
    else:
        path = tmp_path / "null"
        path.symlink_to(os.devnull)
    monkeypatch.setenv("KUBECONFIG", str(path))
    assert main(["kubeconfig", "web-1"]) == 2
    assert main(["kubeconfig", "web-1", "--remove"]) == 2
    assert not path.is_file()


def test_text_in_another_encoding_is_refused(tmp_path):
    path = tmp_path / "config"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(Refused):
        edit_kubeconfig(path, lambda text: text + "x")
    assert path.read_bytes() == b"\xff\xfe"


def test_a_file_that_kubectl_holds_is_waited_for(tmp_path):
    path = tmp_path / "config"
    lock = tmp_path / "config.lock"
    lock.touch()
    seen = []
    threading.Timer(0.2, lambda: (seen.append(path.exists()), lock.unlink())).start()
    edit_kubeconfig(path, lambda text: "kind: Config\n")
    assert seen == [False]
    assert path.read_text() == "kind: Config\n"
    assert not lock.exists()


def test_a_lock_that_stays_is_told_and_not_broken(tmp_path, monkeypatch):
    monkeypatch.setattr(kubeconfig_file, "LOCK_SECONDS", 0.1)
    lock = tmp_path / "config.lock"
    lock.touch()
    with pytest.raises(Conflict, match=r"config\.lock"):
        edit_kubeconfig(tmp_path / "config", lambda text: "kind: Config\n")
    assert lock.exists()
    assert not (tmp_path / "config").exists()


def test_two_at_once_lose_nothing(tmp_path):
    path = tmp_path / "config"

    def add(number: int) -> None:
        edit_kubeconfig(path, lambda text: f"{text}{number}\n")

    threads = [threading.Thread(target=add, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(path.read_text().split()) == [str(number) for number in range(8)]


def test_where_the_kubeconfig_is(tmp_path):
    home = {"HOME": "/home/ann"}
    assert str(find_kubeconfig(home)) == "/home/ann/.kube/config"
    assert str(find_kubeconfig(home | {"KUBECONFIG": ""})) == "/home/ann/.kube/config"
    assert str(find_kubeconfig(home | {"KUBECONFIG": ":/a:/b"})) == "/a"


# --- and out again ----------------------------------------------------------------------------


def test_remove_needs_no_server(environment, tmp_path, capsys, monkeypatch):
    assert main(["kubeconfig", "web-1", "--switch"]) == 0
    assert main(["kubeconfig", "web-1", "--for", "bob"]) == 0
    capsys.readouterr()
    environment.server.stop(None).wait()
    monkeypatch.delenv("BOATYARD_ADDRESS")
    assert main(["kubeconfig", "web-1", "--for", "bob", "--remove"]) == 0
    assert "boatyard-web-1-bob, with" in capsys.readouterr().out
    assert main(["kubeconfig", "web-1", "--remove"]) == 0
    left = shown(tmp_path / ".kube" / "config")
    assert (left["contexts"], left["users"], left["clusters"]) == ([], [], [])
    assert left["current-context"] == ""
    assert main(["kubeconfig", "web-1", "--remove"]) == 0
    assert "has nothing of cluster web-1" in capsys.readouterr().out


def test_remove_without_a_kubeconfig_makes_none(environment, tmp_path, capsys):
    assert main(["kubeconfig", "web-1", "--remove"]) == 0
    assert not (tmp_path / ".kube").exists()


def test_a_deletion_reminds_of_the_context(environment, capsys):
    environment.answers["Orders/Follow"] = lambda request, context: [gone()]
    hint = "Next: boatyard kubeconfig web-1 --remove"
    assert main(["delete", "cluster", "web-1"]) == 0
    assert hint not in capsys.readouterr().out
    assert main(["kubeconfig", "web-1"]) == 0
    assert main(["delete", "cluster", "web-1"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == hint


def test_a_cluster_of_an_odd_name_keeps_the_file_whole(environment, tmp_path, capsys):
    odd = "a: {b} #c\x1b[2J"
    environment.answers["Clusters/List"] = listing(cluster(odd))
    assert main(["kubeconfig", ID]) == 2, "what cannot be printed is no context"
    assert main(["kubeconfig", ID, "--context", "good"]) == 0
    assert shown(tmp_path / ".kube" / "config")["contexts"][0]["name"] == "good"
    assert "\x1b" not in capsys.readouterr().out
    assert main(["kubeconfig", ID, "--remove"]) == 0


# --- passwords --------------------------------------------------------------------------------


def test_a_password_goes_where_it_is_told_to(environment, tmp_path, capsys):
    assert main(["password", "web-1"]) == 2
    assert not environment.requests("Clusters/GetPassword")
    assert main(["password", "web-1", "-o", "-"]) == 0
    assert capsys.readouterr().out == "hunter2\n"
    assert main(["password", "web-1", "-o", "p"]) == 0
    assert ((tmp_path / "p").read_text(), mode(tmp_path / "p")) == ("hunter2\n", 0o600)


def test_where_there_never_is_a_password_one_is_told(environment, capsys):
    def never(request, context):
        context.abort(grpc.StatusCode.NOT_FOUND, "clusters of this platform have no password")

    environment.answers["Clusters/GetPassword"] = never
    assert main(["password", "web-1", "-o", "-"]) == 3
    assert "have no password" in capsys.readouterr().err
