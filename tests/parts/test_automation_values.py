"""Values are written so that every reader of YAML gets back what was sent, below one mark that holds for all."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from boatyard.automation.drivers.local.values import UNSAFE_TAG, iter_texts, render_values
from boatyard.model.errors import Refused

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
DATA = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
    max_leaves=20,
)  # fmt: skip


class Reader(yaml.SafeLoader):
    """Reads the mark as what stands below it, as Ansible does."""


def _construct(loader: Reader, node: yaml.Node) -> Any:
    assert isinstance(node, yaml.MappingNode)
    return loader.construct_mapping(node, deep=True)


Reader.add_constructor("!unsafe", _construct)


@given(st.dictionaries(TEXT, DATA))
def test_what_is_read_is_what_was_sent(values: dict[str, Any]) -> None:
    text = render_values(values)

    assert text.startswith(UNSAFE_TAG)
    assert text.count("!unsafe") == 1 + str(values).count("!unsafe")
    assert text.isascii()
    assert "\n" not in text
    assert yaml.load(text, Reader) == values


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), object(), {1, 2}, b"x"])
def test_what_is_no_data_is_refused_with_its_place(bad: object) -> None:
    with pytest.raises(Refused, match=r"values\.a\[1\]"):
        render_values({"a": [0, bad]})


def test_what_is_nested_without_end_is_refused() -> None:
    nested: list[Any] = []
    for _ in range(100):
        nested = [nested]
    with pytest.raises(Refused, match="nested"):
        render_values({"a": nested})


def test_every_text_and_number_of_a_secret_is_hidden() -> None:
    assert list(iter_texts({"a": ["x", {"b": 5}], "c": True, "d": None})) == ["x", "5"]
