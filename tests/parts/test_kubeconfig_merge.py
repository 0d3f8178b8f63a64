"""A cluster goes into a person's kubeconfig and out again, and nothing else in it changes."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as some

from boatyard.client.kubeconfig import (
    EXTENSION_NAME,
    EntryOwner,
    list_contexts,
    merge_cluster,
    remove_cluster,
)
from boatyard.model.errors import Exists, Refused

WEB = EntryOwner(cluster="id-1", name="web-1", server="127.0.0.1:8000", tenant="acme")
CONTEXT = "boatyard-web-1"


def received(server: str = "https://10.0.0.1:6443", **user: Any) -> str:
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {"name": "c", "cluster": {"server": server, "certificate-authority-data": "Y2E="}}
            ],
            "users": [{"name": "u", "user": user or {"client-key-data": "a2V5"}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
    )


def into(text: str, owner: EntryOwner = WEB, context: str = CONTEXT, **how: Any) -> dict[str, Any]:
    merged: dict[str, Any] = yaml.safe_load(
        merge_cluster(text, received(), context=context, owner=owner, **how)
    )
    return merged


def without(config: dict[str, Any], name: str = CONTEXT) -> dict[str, Any]:
    """What is left of it when the entries of that name are not looked at."""
    return {
        key: [one for one in value if one["name"] != name]
        if key in ("clusters", "users", "contexts")
        else value
        for key, value in config.items()
    }


def test_a_new_file_is_a_whole_kubeconfig() -> None:
    merged = into("")
    about = {"cluster": "id-1", "name": "web-1", "server": "127.0.0.1:8000", "tenant": "acme"}
    mark = [{"name": EXTENSION_NAME, "extension": about}]
    assert merged == {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": CONTEXT,
                "cluster": {
                    "server": "https://10.0.0.1:6443",
                    "certificate-authority-data": "Y2E=",
                    "extensions": mark,
                },
            }
        ],
        "users": [{"name": CONTEXT, "user": {"client-key-data": "a2V5", "extensions": mark}}],
        "contexts": [
            {"name": CONTEXT, "context": {"cluster": CONTEXT, "user": CONTEXT, "extensions": mark}}
        ],
    }


_WORDS = some.text(min_size=1, max_size=12)
_VALUES = some.recursive(
    some.none() | some.booleans() | some.integers() | some.dates() | _WORDS,
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(_WORDS, inner, max_size=3),
    max_leaves=8,
)


def _entries(part: str) -> some.SearchStrategy[Any]:
    one = some.fixed_dictionaries(
        {"name": _WORDS, part: some.dictionaries(_WORDS, _VALUES, max_size=3)}
    )
    return some.lists(one, max_size=3)


_CONFIGS = some.fixed_dictionaries(
    {"kind": some.just("Config")},
    optional={
        "apiVersion": some.just("v1"),
        "clusters": _entries("cluster"),
        "users": _entries("user") | some.none(),
        "contexts": _entries("context"),
        "preferences": _VALUES,
        "x-of-tomorrow": _VALUES,
        "current-context": _WORDS,
    },
)


@settings(max_examples=40)
@given(config=_CONFIGS, flow=some.sampled_from([True, False, None]), name=_WORDS)
def test_everything_else_in_the_file_stays_as_it_is(
    config: dict[str, Any], flow: bool | None, name: str
) -> None:
    context = f"boatyard-{name}" if name.isprintable() else CONTEXT
    text = yaml.safe_dump(config, default_flow_style=flow, allow_unicode=True)
    merged = merge_cluster(text, received(), context=context, owner=WEB)
    before = yaml.safe_load(text)
    again = yaml.safe_load(merged)
    for table in ("clusters", "users", "contexts"):
        before[table] = before.get(table) or []
    assert without(again, context) == before
    assert [one["name"] for one in again["contexts"]].count(context) == 1

    assert merge_cluster(merged, received(), context=context, owner=WEB) == merged, (
        "once more is the same"
    )
    removed = remove_cluster(merged, "web-1")
    assert removed.contexts == (context,)
    assert yaml.safe_load(removed.text) == before


def test_what_is_spelled_in_some_way_is_spelled_so_afterwards() -> None:
    """Values that Python would read as something else are none of our business."""
    text = (
        "kind: Config\n"
        "users:\n"
        "- name: ann\n"
        "  user: {token: 0123, since: 2024-01-01, on: yes, text: '007', big: 1_000}\n"
        "preferences: &all {colors: true}\n"
        "x-again: *all\n"
    )
    merged = merge_cluster(text, received(), context=CONTEXT, owner=WEB)
    assert "{token: 0123, since: 2024-01-01, on: yes, text: '007', big: 1_000}" in merged
    assert yaml.safe_load(merged)["x-again"] == {"colors": True}


def test_a_key_that_looks_like_a_number_stays_a_text() -> None:
    merged = yaml.safe_load(
        merge_cluster("", received(token="0123"), context="1e3", owner=WEB, switch=True)
    )
    assert merged["users"][0]["user"]["token"] == "0123"
    assert merged["current-context"] == "1e3"


def test_only_on_request_it_becomes_the_current_one() -> None:
    text = "kind: Config\ncurrent-context: mine\n"
    assert into(text)["current-context"] == "mine"
    assert into(text, switch=True)["current-context"] == CONTEXT
    assert "current-context" not in into("")


def test_the_same_cluster_is_replaced_in_its_place() -> None:
    first = merge_cluster("", received(), context=CONTEXT, owner=WEB)
    other = merge_cluster(first, received(), context="other", owner=WEB)
    newer = merge_cluster(other, received("https://10.9.9.9:6443"), context=CONTEXT, owner=WEB)
    clusters = yaml.safe_load(newer)["clusters"]
    assert [one["name"] for one in clusters] == [CONTEXT, "other"]
    assert clusters[0]["cluster"]["server"] == "https://10.9.9.9:6443"


@pytest.mark.parametrize("change, taken", [
    pytest.param({"cluster": "id-2"}, True, id="a later one of the same name follows it"),
    pytest.param({"server": "elsewhere:1"}, True, id="the same one by another address"),
    pytest.param({"cluster": "id-2", "server": "elsewhere:1"}, False, id="of another Boatyard"),
    pytest.param({"cluster": "id-2", "tenant": "globex"}, False, id="of another tenant"),
    pytest.param({"cluster": "id-2", "project": "red"}, False, id="of another project"),
    pytest.param({"cluster": "id-2", "name": "web-2"}, False, id="of another name"),
])  # fmt: skip
def test_a_context_is_never_silently_given_to_another_cluster(
    change: dict[str, str], taken: bool
) -> None:
    text = merge_cluster("", received(), context=CONTEXT, owner=WEB)
    other = dataclasses.replace(WEB, **change)
    if taken:
        assert list_contexts(
            merge_cluster(text, received(), context=CONTEXT, owner=other), other.cluster
        )
    else:
        with pytest.raises(Exists):
            merge_cluster(text, received(), context=CONTEXT, owner=other)


@pytest.mark.parametrize("table, part", [
    ("clusters", "cluster"), ("users", "user"), ("contexts", "context")
])  # fmt: skip
def test_an_entry_that_is_not_ours_is_left_alone(table: str, part: str) -> None:
    text = yaml.safe_dump({"kind": "Config", table: [{"name": CONTEXT, part: {"server": "x"}}]})
    with pytest.raises(Exists):
        merge_cluster(text, received(), context=CONTEXT, owner=WEB)
    if table == "contexts":
        with pytest.raises(Exists):
            remove_cluster(text, "web-1", context=CONTEXT)
        assert remove_cluster(text, "web-1").contexts == ()


@pytest.mark.parametrize("text", [
    pytest.param("kind: [", id="not YAML"),
    pytest.param("a: 1\n---\nb: 2\n", id="two documents"),
    pytest.param("- 1\n", id="a list"),
    pytest.param("just words", id="words"),
    pytest.param("kind: Pod\n", id="another kind"),
    pytest.param("contexts: {a: b}\n", id="contexts are no list"),
    pytest.param("clusters: [{server: x}]\n", id="an entry without a name"),
    pytest.param("users: [7]\n", id="an entry that is a number"),
    pytest.param("users: []\nusers: []\n", id="one table twice"),
    pytest.param("kind: \x07", id="a control character"),
    pytest.param("[" * 2000, id="deeper than anybody can read"),
])  # fmt: skip
def test_a_broken_kubeconfig_is_refused(text: str) -> None:
    with pytest.raises(Refused):
        merge_cluster(text, received(), context=CONTEXT, owner=WEB)
    with pytest.raises(Refused):
        remove_cluster(text, "web-1")


def test_the_words_about_a_broken_one_hold_none_of_it() -> None:
    with pytest.raises(Refused) as refused:
        merge_cluster("users: [hunter2: {", received(), context=CONTEXT, owner=WEB)
    assert "hunter2" not in str(refused.value)
    assert refused.value.__cause__ is None


@pytest.mark.parametrize("text", [
    pytest.param("", id="nothing"),
    pytest.param("kube: config", id="no contexts"),
    pytest.param(received().replace("current-context: x", "current-context: y"), id="no such context"),
    pytest.param(received().replace("cluster: c", "cluster: d"), id="no such cluster"),
    pytest.param(received(exec={"command": "rm"}), id="a program to run"),
    pytest.param(received(tokenFile="/etc/shadow"), id="a file of ours"),
    pytest.param(received(**{"client-key": "/etc/shadow"}), id="a key file of ours"),
    pytest.param(received(**{"auth-provider": {"name": "x"}}), id="a plugin"),
    pytest.param(received(token=["a"]), id="a token that is a list"),
    pytest.param(received().replace("server:", "proxy-url: http://evil\n    server:"), id="a proxy"),
])  # fmt: skip
def test_what_a_server_sends_is_not_believed_blindly(text: str) -> None:
    with pytest.raises(Refused):
        merge_cluster("", text, context=CONTEXT, owner=WEB)


def test_odd_names_are_only_names() -> None:
    odd = "boatyard-a: {b}\t#c'\"&*!|>%@`é".replace("\t", " ")
    merged = into("", context=odd, switch=True)
    assert merged["contexts"][0]["name"] == merged["current-context"] == odd
    for name in ("", "a\nb", "a\x1b[2J"):
        with pytest.raises(Refused):
            merge_cluster("", received(), context=name, owner=WEB)


def test_removing_says_who_else_used_it_and_clears_the_current_one() -> None:
    mine = {"name": "dev", "context": {"cluster": CONTEXT, "user": CONTEXT, "namespace": "dev"}}
    config = into("", switch=True)
    config["contexts"].append(mine)
    removed = remove_cluster(yaml.safe_dump(config), "web-1")
    assert (removed.contexts, removed.broken) == ((CONTEXT,), ("dev",))
    left = yaml.safe_load(removed.text)
    assert (left["clusters"], left["users"], left["contexts"]) == ([], [], [mine])
    assert left["current-context"] == ""


def test_removing_takes_a_cluster_with_all_its_users_or_only_one() -> None:
    text = merge_cluster("", received(), context=CONTEXT, owner=WEB)
    bob = dataclasses.replace(WEB, user="bob")
    text = merge_cluster(text, received(), context="boatyard-web-1-bob", owner=bob)
    assert remove_cluster(text, "id-1").contexts == (CONTEXT, "boatyard-web-1-bob")
    only = remove_cluster(text, "web-1", user="bob")
    assert only.contexts == ("boatyard-web-1-bob",)
    assert list_contexts(only.text, "id-1") == (CONTEXT,)


def test_a_context_that_was_renamed_is_still_ours() -> None:
    config = into("")
    config["contexts"][0]["name"] = "short"
    left = remove_cluster(yaml.safe_dump(config), "web-1")
    assert left.contexts == ("short",)
    assert yaml.safe_load(left.text)["users"] == []


def test_removing_does_not_guess_between_two_of_the_same_name() -> None:
    text = merge_cluster("", received(), context="a", owner=WEB)
    other = dataclasses.replace(WEB, cluster="id-2", server="elsewhere:1")
    text = merge_cluster(text, received(), context="b", owner=other)
    with pytest.raises(Refused, match="a, b"):
        remove_cluster(text, "web-1")
    assert remove_cluster(text, "web-1", context="b").contexts == ("b",)


def test_a_user_of_the_persons_own_in_a_context_of_ours_stays() -> None:
    config = into("")
    config["users"].append({"name": "mine", "user": {"token": "t"}})
    config["contexts"][0]["context"]["user"] = "mine"

    left = yaml.safe_load(remove_cluster(yaml.safe_dump(config), "web-1").text)

    assert [user["name"] for user in left["users"]] == [CONTEXT, "mine"]
    assert left["contexts"] == left["clusters"] == []
