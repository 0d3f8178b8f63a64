"""Back-off: pauses grow, are bounded and spread, and nobody writes them by hand."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from itertools import islice

import pytest

from boatyard.model.backoff import Backoff, share_of
from tests.unit.test_house_names import sources

# Programs that run without our packages, and fakes, which share no module with the product.
APART = ("src/boatyard/fakes/", "src/boatyard/automation/drivers/local/inside/")


@pytest.mark.parametrize(
    "backoff, expected",
    [
        pytest.param(Backoff(1.0, 5.0), [1.0, 2.0, 4.0, 5.0, 5.0], id="doubled up to the longest"),
        pytest.param(Backoff(0.5), [0.5, 1.0, 2.0, 4.0, 8.0], id="without a bound"),
        pytest.param(Backoff(1.0, 10.0, 3.0), [1.0, 3.0, 9.0, 10.0, 10.0], id="another factor"),
        pytest.param(Backoff(9.0, 5.0), [5.0] * 5, id="the bound holds for the first too"),
    ],
)
def test_pauses_grow_up_to_the_bound(backoff: Backoff, expected: list[float]) -> None:
    assert list(islice(backoff.pauses(), 5)) == expected
    assert [backoff.pause(tries) for tries in range(1, 6)] == expected


def test_many_tries_need_no_larger_number_than_there_is() -> None:
    assert Backoff(0.02, 60.0).pause(10**9) == 60.0


def test_a_share_spreads_a_pause_by_a_quarter_also_past_the_bound() -> None:
    backoff = Backoff(4.0, 8.0)

    assert [backoff.pause(1, share=share) for share in (0.0, 0.5, 1.0)] == [3.0, 4.0, 5.0]
    assert [backoff.pause(9, share=share) for share in (0.0, 0.5, 1.0)] == [6.0, 8.0, 10.0]


def test_shares_are_the_same_for_a_text_and_differ_between_texts() -> None:
    shares = [share_of(f"o-{number}") for number in range(50)]

    assert shares == [share_of(f"o-{number}") for number in range(50)]
    assert all(0.0 <= share <= 1.0 for share in shares)
    assert len(set(shares)) > 30


def test_no_back_off_is_written_by_hand() -> None:
    assert list(written_by_hand(sources())) == []


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("delay = min(60, 2.0 ** min(failures, 16))", id="a power of the tries"),
        pytest.param("delay = 0.25 * 2**trouble.times", id="a power of an attribute"),
        pytest.param("delay = 1.5 ** tries", id="another factor"),
        pytest.param("pause *= 2", id="doubled in place"),
        pytest.param("pause = min(pause * 2, LONGEST)", id="doubled in an assignment"),
        pytest.param("self.pause = min(2 * self.pause, LONGEST)", id="an attribute"),
        pytest.param("again, pause = at + pause, pause * 1.5", id="one of several"),
        pytest.param("pause = pause + pause", id="added to itself"),
        pytest.param("pause += pause", id="added to itself in place"),
        pytest.param("def f():\n    return min(pause * 2, LONGEST)", id="returned"),
    ],
)
def test_a_back_off_by_hand_is_noticed(code: str) -> None:
    assert len(list(written_by_hand([("a.py", code)]))) == 1


@pytest.mark.parametrize(
    "code",
    [
        "largest = 2**63 - 1",
        "size = 2 * 1024**3",
        "number *= 1024.0**power",
        "width *= 16",
        "seconds = 2 * LEASE",
        "width = max(width, 2 * indent)",
        "total = total + pause",
    ],
)
def test_other_arithmetic_is_not(code: str) -> None:
    assert list(written_by_hand([("a.py", code)])) == []


def written_by_hand(files: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Each place that raises a number to how often something was tried, or multiplies a value into itself."""
    for path, text in files:
        if path.startswith(APART) or path.endswith("model/backoff.py"):
            continue
        for node in ast.walk(ast.parse(text)):
            if is_power(node) or is_grown(node) or is_doubled_pause(node):
                yield f"{path}:{node.lineno}: {ast.unparse(node)}"  # type: ignore[attr-defined]


def is_factor(value: object) -> bool:
    """Pauses grow by small factors; larger ones are units (1000, 1024) and widths."""
    return isinstance(value, int | float) and 1 < value < 10


def is_power(node: ast.AST) -> bool:
    match node:
        case ast.BinOp(left=ast.Constant(value=base), op=ast.Pow(), right=exponent):
            return is_factor(base) and not isinstance(exponent, ast.Constant)
    return False


def is_grown(node: ast.AST) -> bool:
    """`x *= 2`, `x += x`, and `x = …` with `x * number` or `x + x` in it."""
    match node:
        case ast.AugAssign(op=ast.Mult(), value=ast.Constant(value=factor)):
            return is_factor(factor)
        case ast.AugAssign(target=target, op=ast.Add(), value=value):
            return ast.unparse(target) == ast.unparse(value)
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
            return any(grows(value, target) for target, value in zip(targets, values, strict=False))
        case ast.Assign(targets=[target], value=value):
            return grows(value, target)
    return False


def grows(value: ast.expr, target: ast.expr) -> bool:
    name = ast.unparse(target)
    for node in ast.walk(value):
        match node:
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                sides = {ast.unparse(left), ast.unparse(right)}
                constants = [side.value for side in (left, right) if isinstance(side, ast.Constant)]
                if name in sides and any(is_factor(value) for value in constants):
                    return True
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                if ast.unparse(left) == ast.unparse(right) == name:
                    return True
    return False


def is_doubled_pause(node: ast.AST) -> bool:
    """`return min(pause * 2, …)`: what a helper of a loop would say."""
    match node:
        case ast.Return(value=ast.expr() as value):
            return grows(value, ast.Name("pause"))
    return False
