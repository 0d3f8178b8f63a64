"""The parts of the supervisor that need no run: hiding, cutting lines, the story."""

from __future__ import annotations

import base64
import importlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from boatyard.automation.drivers.local.run_records import EVENTS, RunRecords

INSIDE = Path(__file__).parents[2] / "src/boatyard/automation/drivers/local/inside"


@pytest.fixture
def inside() -> Iterator[dict[str, ModuleType]]:
    """It has a root of its own, as in Ansible's environment."""
    sys.path.insert(0, str(INSIDE))
    try:
        names = ("hiding", "lines", "story")
        yield {name: importlib.import_module(f"boatyard_inside.{name}") for name in names}
    finally:
        sys.path.remove(str(INSIDE))


def test_a_secret_is_hidden_in_every_form(inside: dict[str, ModuleType]) -> None:
    secret = 'pa"ss\\wörd'
    hide = inside["hiding"].Hiding([secret])
    forms = (
        secret,
        json.dumps(secret),
        repr(secret),
        base64.b64encode(secret.encode()).decode(),
        "pa%22ss%5Cw%C3%B6rd",
    )
    for form in forms:
        assert "ss" not in hide(f"before {form} after"), form


@pytest.mark.parametrize("before", ["", "a", "ab", "user:", "abcdefgh"])
@pytest.mark.parametrize("after", ["", "\n", "??", "@host"])
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_a_secret_is_hidden_in_base64_wherever_it_stands(
    inside: dict[str, ModuleType], before: str, after: str, encode: Callable[[bytes], bytes]
) -> None:
    secret = "h?nter~2>horse"
    coded = encode(f"{before}{secret}{after}".encode()).decode()

    shown = inside["hiding"].Hiding([secret])(f"Basic {coded}.")

    assert "********" in shown
    # At most the characters stay that the secret shares with what stands beside it.
    kept = shown.removeprefix("Basic ").removesuffix(".").split("********")
    around = len(f"{before}{after}")
    assert sum(map(len, kept)) <= around * 4 // 3 + 6, shown


def test_a_secret_is_hidden_in_json_that_is_a_text_in_json(inside: dict[str, ModuleType]) -> None:
    secret = '{"auths": {"quay": "öffne\\dich"}}'
    shown = inside["hiding"].Hiding([secret])(json.dumps({"a": json.dumps({"b": secret})}))
    assert "auths" not in shown


@pytest.mark.parametrize("cut", range(3, 20))
def test_the_beginning_of_a_secret_at_a_cut_is_hidden(
    inside: dict[str, ModuleType], tmp_path: Path, cut: int
) -> None:
    """Hiding makes texts shorter: what stood at the cut can come into what is kept."""
    secret = "correct-horse-battery-staple-and-then-some-more"
    hide = inside["hiding"].Hiding([secret])
    story = inside["story"].Story(str(tmp_path / "events.jsonl"), 100_000, hide)
    told = (secret * 1000)[: 16_000 // len(secret) * len(secret)] + f"x {secret[:cut]}"

    for text in (told, told + "\ufffd"):
        assert story.clean(text).endswith("x ********")
        assert "corr" not in story.clean(text)
    assert story.clean(f"it is {secret[:cut]}") == f"it is {secret[:cut]}", "nobody has cut it"


def test_a_secret_of_several_lines_is_hidden_line_by_line(inside: dict[str, ModuleType]) -> None:
    hide = inside["hiding"].Hiding(["-----BEGIN KEY-----\nabcdefghijkl\n"])
    assert hide("got abcdefghijkl") == "got ********"


def test_lines_come_whole_however_they_are_cut(inside: dict[str, ModuleType]) -> None:
    lines = inside["lines"].Lines(100, 0)
    found = [line for part in (b"on", b"e\ntw", b"o\r\nthr") for line in lines.feed(part)]
    assert found == [b"one", b"two"]
    assert list(lines.rest()) == [b"thr"]


def test_a_line_without_end_is_cut_and_the_rest_dropped(inside: dict[str, ModuleType]) -> None:
    lines = inside["lines"].Lines(10, 5)
    found = [line for _ in range(100) for line in lines.feed(b"x" * 7)]
    found += lines.feed(b"\nnext\n")
    assert found == [b"x" * 15, b"next"]


def test_the_story_goes_on_where_it_was_torn(inside: dict[str, ModuleType], tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    hide = inside["hiding"].Hiding(["secret"])
    inside["story"].Story(str(path), 100_000, hide).tell("task", "one \x1b[31m", "my secret")
    with path.open("ab") as file:
        file.write(b'{"number": 2, "at')

    inside["story"].Story(str(path), 100_000, hide, attempt=2).tell("ok", "one")

    events = [json.loads(line) for line in path.read_text().splitlines()]
    assert [event["number"] for event in events] == [1, 2]
    assert events[0]["text"] == "my ********"
    assert "\x1b" not in events[0]["task"]
    assert [event["attempt"] for event in events] == [1, 2]
    assert events[0]["start"] != events[1]["start"], "who told what can be told apart"


def test_what_is_no_text_is_told_as_text(inside: dict[str, ModuleType], tmp_path: Path) -> None:
    """Bytes that are no text come as halves of characters; no reader takes them, and no database a NUL."""
    records, key = RunRecords(tmp_path), "order/post_install"
    records.run_directory(key).mkdir()
    path = records.run_directory(key) / EVENTS
    story = inside["story"].Story(str(path), 100_000, inside["hiding"].Hiding(["s\0cret"]))

    story.tell("ok", "half \udc80", "bytes \udc80\udfff NUL \0 whole \U0001f600 s\0cret")

    (event,) = records.read_events(key, 0)
    assert event.task == "half \ufffd"
    assert event.text == "bytes \ufffd\ufffd NUL \ufffd whole \U0001f600 ********"
    assert story.keep("a\udc80\0\n\x1b s\0cret") == "a\ufffd\ufffd\n\x1b ********"
