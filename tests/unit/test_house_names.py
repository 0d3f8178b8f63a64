"""Names say what they stand for: one class per name, variables are nouns, log messages begin with their object."""

from __future__ import annotations

import ast
import textwrap
from collections import defaultdict
from collections.abc import Iterable, Iterator

import pytest

from tests.unit.test_house_sizes import ROOT, SOURCE, is_generated


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Words that say what happened to a value, not what it is. `left` and `right` of a comparison count too: see LIMIT.
PARTICIPLES = words(
    """
    found one said seen wanted kept told asked about held made gone given meant known left taken shown
    ended begun
    """
)
# Only goes down: who removes one lowers it.
LIMIT = 26

# Ansible asks for this name in every plugin.
REQUIRED_TWICE = frozenset({"ActionModule"})
# What a log message may begin with: the thing it is about.
OBJECTS = words(
    """
    access API automation call certificate changes claim client cluster component control database
    decision driver duplicate event events folder hub hubs journal keeper leadership lease leases
    leftover lost machines node object objects order orders planted PostgreSQL queue resource role roles
    run runs step stray sweep template token tokens twin warm watch write
    """
)
LOG_METHODS = frozenset({"debug", "info", "warning", "error", "exception", "critical", "log"})


def test_no_public_class_name_is_defined_twice() -> None:
    assert names_defined_twice(sources()) == REQUIRED_TWICE


def test_variables_are_nouns() -> None:
    places = list(participles(sources()))

    assert len(places) <= LIMIT, "\n".join(places)
    assert len(places) == LIMIT, f"good: lower LIMIT to {len(places)}"


def test_log_messages_begin_with_their_object() -> None:
    assert list(messages_without_object(sources())) == []


def test_a_class_name_in_two_files_is_noticed() -> None:
    files = {"a.py": "class Record: ...\nclass _Part: ...", "b.py": "class Record: ...\nclass _Part: ..."}  # fmt: skip

    assert names_defined_twice(files.items()) == {"Record"}


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("found = 1", id="an assignment"),
        pytest.param("def f(one): ...", id="a parameter"),
        pytest.param("for told in range(3): ...", id="a loop"),
        pytest.param("x = [kept for kept in ()]", id="a comprehension"),
        pytest.param("if (seen := 1): ...", id="a walrus"),
        pytest.param("class C:\n    given: int", id="a field"),
    ],
)
def test_a_participle_is_noticed_wherever_it_is_bound(code: str) -> None:
    assert len(list(participles([("a.py", code)]))) == 1
    assert list(participles([("a.py", "hosts = found")])) == []


@pytest.mark.parametrize(
    "call",
    [
        'logger.warning("set aside", extra={})',
        'logger.exception("not swept")',
        'logger.info("will be retried")',
        'logger.log(level, "cannot be read")',
        'self._logger.error(f"{thing} gone")',
    ],
)
def test_a_log_message_without_its_object_is_noticed(call: str) -> None:
    assert len(list(messages_without_object([("a.py", call)]))) == 1
    assert list(messages_without_object([("a.py", 'logger.info("hub not watched")')])) == []


def sources() -> list[tuple[str, str]]:
    paths = [path for path in sorted(SOURCE.rglob("*.py")) if not is_generated(path)]
    return [(str(path.relative_to(ROOT)), path.read_text()) for path in paths]


def names_defined_twice(files: Iterable[tuple[str, str]]) -> set[str]:
    paths = defaultdict(set)
    for path, text in files:
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                paths[node.name].add(path)
    return {name for name in paths if len(paths[name]) > 1}


def participles(files: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Each place that binds one."""
    for path, text in files:
        for node in ast.walk(ast.parse(textwrap.dedent(text))):
            match node:
                case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                    if name in PARTICIPLES:
                        yield f"{path}:{node.lineno}: {name}"


def messages_without_object(files: Iterable[tuple[str, str]]) -> Iterator[str]:
    for path, text in files:
        for node in ast.walk(ast.parse(text)):
            match node:
                case ast.Call(
                    func=ast.Attribute(value=receiver, attr=method), args=[message, *_]
                ) if method in LOG_METHODS and ast.unparse(receiver).endswith("logger"):
                    if method == "log":  # its level comes first
                        message = node.args[1]
                    if not begins_with_object(message):
                        yield f"{path}:{node.lineno}: {ast.unparse(message)}"


def begins_with_object(message: ast.expr) -> bool:
    """True for a fixed text whose first word is known as an object."""
    return (
        isinstance(message, ast.Constant)
        and isinstance(message.value, str)
        and message.value.split(maxsplit=1)[0] in OBJECTS
    )
