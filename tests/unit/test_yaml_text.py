"""YAML of others is read, or refused; it never ends the process."""

from __future__ import annotations

import subprocess
import sys

import pytest

from boatyard.model.yaml_text import DEEPEST_NESTING, NotYaml, load_yaml


def test_what_a_kubeconfig_is_made_of_is_read() -> None:
    assert load_yaml(b"a: {b: [1, two]}\nc: |\n  text\n") == {"a": {"b": [1, "two"]}, "c": "text\n"}
    assert load_yaml("[" * DEEPEST_NESTING + "]" * DEEPEST_NESTING) is not None


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a: [", id="unfinished"),
        pytest.param(b"\xff\xfe\xfa", id="not text"),
        pytest.param("a: 1\n---\nb: 2\n", id="two documents"),
        pytest.param("a: &x 1\nb: *x\n", id="an alias"),
        pytest.param(
            "[" * (DEEPEST_NESTING + 1) + "]" * (DEEPEST_NESTING + 1), id="nested too deeply"
        ),
        pytest.param("!!python/object/apply:os.getpid []", id="a thing of Python"),
    ],
)
def test_what_is_refused(text: str | bytes) -> None:
    with pytest.raises(NotYaml):
        load_yaml(text)


def test_no_word_of_it_is_quoted() -> None:
    with pytest.raises(NotYaml) as raised:
        load_yaml("token: [hush-hush")

    assert "hush" not in repr(raised.value) + repr(raised.value.__cause__)


def test_a_text_that_would_end_the_process_is_refused() -> None:
    """In a process of its own, which a regression would end."""
    program = (
        "from boatyard.model.yaml_text import *\n"
        "try:\n    load_yaml('[' * 130_000)\n"
        "except NotYaml:\n    print('refused')\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60
    )

    assert (done.returncode, done.stdout.strip()) == (0, "refused")
