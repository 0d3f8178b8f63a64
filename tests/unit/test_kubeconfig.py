"""Everybody who reads a kubeconfig finds the same entries in it, and the same things wrong with it."""

from __future__ import annotations

from typing import Any

import pytest

from boatyard.model.kubeconfig import (
    CLUSTERS,
    CONTEXTS,
    USERS,
    KubeconfigError,
    NoCurrentContext,
    choose_context,
    decode_field,
    find_entry,
    load_kubeconfig,
)

SECRET = "s3cret"
CONFIG: dict[str, Any] = {
    "current-context": "x",
    CONTEXTS: [{"name": "x", "context": {"cluster": "c"}}, {"name": "y"}],
    CLUSTERS: [3, {"name": "c", "cluster": {"server": "https://a"}}],
    USERS: [{"name": "u", "user": SECRET}],
}


def test_the_context_named_wins_over_the_current_one() -> None:
    assert choose_context(CONFIG) == "x"
    assert choose_context(CONFIG, "y") == "y"


@pytest.mark.parametrize("current", [None, ""])
def test_without_a_current_context_one_must_be_named(current: str | None) -> None:
    with pytest.raises(NoCurrentContext):
        choose_context({"current-context": current})


def test_a_current_context_that_is_no_text_is_refused() -> None:
    with pytest.raises(KubeconfigError, match="not a text"):
        choose_context({"current-context": ["x"]})


def test_an_entry_is_found_by_name_and_may_be_empty() -> None:
    assert find_entry(CONFIG, CLUSTERS, "c") == {"server": "https://a"}
    assert find_entry(CONFIG, CONTEXTS, "y") == {}


@pytest.mark.parametrize(
    "table, name, words",
    [
        pytest.param(CLUSTERS, "d", "no cluster 'd'; there is 'c'", id="another name"),
        pytest.param(CLUSTERS, 3, "no cluster '3'", id="a name that is no text"),
        pytest.param(CLUSTERS, None, "no cluster ''", id="no name"),
        pytest.param(USERS, "u", "user 'u' is not a mapping", id="a body that is none"),
    ],
)
def test_what_is_not_there_is_told_with_what_is(table: str, name: object, words: str) -> None:
    with pytest.raises(KubeconfigError) as raised:
        find_entry(CONFIG, table, name)

    assert words in str(raised.value)
    assert SECRET not in str(raised.value)


def test_a_table_that_is_no_list_is_refused() -> None:
    with pytest.raises(KubeconfigError, match="contexts is not a list"):
        find_entry({CONTEXTS: {"x": {}}}, CONTEXTS, "x")


def test_names_in_messages_are_short_few_and_on_one_line() -> None:
    names = [f"{'n' * 200}\n{number}" for number in range(50)]
    config = {USERS: [{"name": name} for name in names]}

    with pytest.raises(KubeconfigError) as raised:
        find_entry(config, USERS, "u\n\x1b[31m" + "u" * 200)

    assert len(str(raised.value)) < 1000
    assert str(raised.value).isprintable()


@pytest.mark.parametrize(
    "text, words",
    [
        pytest.param(f"token: {SECRET}: {SECRET}", "cannot be read", id="not YAML"),
        pytest.param("", "not a kubeconfig", id="empty"),
        pytest.param(f"- {SECRET}", "not a kubeconfig", id="a list"),
    ],
)
def test_a_text_that_is_no_kubeconfig_is_not_quoted(text: str, words: str) -> None:
    with pytest.raises(KubeconfigError, match=words) as raised:
        load_kubeconfig(text)

    assert SECRET not in str(raised.value)
    assert raised.value.__cause__ is None


def test_contents_are_decoded_also_when_they_are_wrapped() -> None:
    assert decode_field({"client-key-data": "QU\n  JD\n"}, "client-key-data") == b"ABC"
    assert decode_field({}, "client-key-data") == b""


@pytest.mark.parametrize("value", [f"{SECRET}QQ!", 7, "QUJ"])
def test_contents_that_are_not_base64_are_refused_unseen(value: object) -> None:
    with pytest.raises(KubeconfigError, match="client-key-data is not") as raised:
        decode_field({"client-key-data": value}, "client-key-data")

    assert str(value) not in str(raised.value)
