"""What `template test` decides without running anything: values, leaks, which questions, what is shown."""

from __future__ import annotations

import argparse
import base64
import re
from pathlib import Path
from random import Random
from typing import Any

import pytest

from boatyard.app.main import main
from boatyard.cli.template_commands import _test
from boatyard.model.errors import Refused, Violation
from boatyard.roles.form import Form, Option, Relations, RequiredIf
from boatyard.roles.form_check import check_values
from boatyard.template_test.environment import mask_order_values, to_parameter
from boatyard.template_test.form_values import ValueGenerator
from boatyard.template_test.leaks import SecretFinder
from boatyard.template_test.report import FAILED, PASSED, SKIPPED, QuestionResult, RoleTestReport
from boatyard.template_test.runner import QUESTION_NAMES, select_questions
from tests.support.roles import files, write

FORM = Form(
    options={
        "name": Option(required=True),
        "size": Option(type="int", choices=(1, 2, 3), has_default=True, default=1),
        "mode": Option(choices=("plain", "fancy")),
        "colour": Option(),
        "token": Option(no_log=True),
        "room": Option(type="bytes"),
        "pages": Option(
            type="list",
            elements="dict",
            options={"path": Option(required=True), "hits": Option(type="int")},
        ),
        "site": Option(type="dict", options={"street": Option(), "door": Option(type="float")}),
        "labels": Option(type="dict"),
        "by_name": Option(),
        "by_number": Option(type="int"),
    },
    relations=Relations(
        mutually_exclusive=(("by_name", "by_number"),),
        required_one_of=(("by_name", "by_number"),),
        required_if=(RequiredIf("mode", "fancy", ("colour",)),),
    ),
)


def violations_of(form: Form, values: Any) -> list[Violation]:
    found: list[Violation] = []
    check_values(form, values, found, at="p")
    return found


# --- values --------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(10))
def test_good_values_are_good(seed: int) -> None:
    fuzz = ValueGenerator(FORM, Random(seed))

    made = [fuzz.make_minimal(), fuzz.make_maximal(), *fuzz.iter_good(20)]

    assert len(made) == 22
    assert [violations_of(FORM, values) for values in made] == [[]] * 22


@pytest.mark.parametrize("seed", range(10))
def test_bad_values_are_bad_where_they_say(seed: int) -> None:
    bad = list(ValueGenerator(FORM, Random(seed)).iter_bad("p"))

    assert len(bad) > 15
    for one in bad:
        assert one.path in [found.path for found in violations_of(FORM, one.values)], one


def test_least_is_what_must_be_given_and_most_all_that_may_be() -> None:
    fuzz = ValueGenerator(FORM, Random(1))

    least, most = fuzz.make_minimal(), fuzz.make_maximal()

    assert least is not None
    assert least.keys() in ({"name", "by_name"}, {"name", "by_number"})
    assert most is not None
    assert len(most) == len(FORM.options) - 1


def test_the_same_seed_makes_the_same_values() -> None:
    one, other, another = (
        list(ValueGenerator(FORM, Random(seed)).iter_good(5)) for seed in (1, 1, 2)
    )

    assert one == other
    assert one != another


def test_no_values_are_made_for_a_form_that_takes_none() -> None:
    form = Form(
        options={"a": Option(required=True), "b": Option(required=True)},
        relations=Relations(mutually_exclusive=(("a", "b"),)),
    )
    fuzz = ValueGenerator(form, Random(1))

    assert (
        fuzz.make_minimal(),
        fuzz.make_maximal(),
        list(fuzz.iter_good(3)),
        list(fuzz.iter_bad("p")),
    ) == (
        None,
        None,
        [],
        [],
    )


def test_pinned_values_are_in_every_set() -> None:
    fuzz = ValueGenerator(FORM, Random(1), {"colour": "blue"})

    made = [fuzz.make_minimal(), fuzz.make_maximal(), *fuzz.iter_good(5)]

    assert all(values is not None and values["colour"] == "blue" for values in made)


def test_what_is_of_another_type_is_sent_as_it_is() -> None:
    assert to_parameter(Option(type="int"), 3) == {
        "@type": "type.googleapis.com/google.protobuf.Int64Value",
        "value": "3",
    }
    assert to_parameter(Option(type="int"), True)["@type"].endswith(".Value")
    assert to_parameter(Option(), 7)["value"] == 7
    assert to_parameter(None, {"a": 1})["value"] == {"a": 1}


# --- leaks ---------------------------------------------------------------------------------------

SECRET = "Secret4711aabbccddeeff00"


@pytest.mark.parametrize(
    "text, how",
    [
        pytest.param(f"the password is {SECRET}.", "in clear", id="as it is"),
        pytest.param(SECRET.upper(), "in clear", id="in capitals"),
        pytest.param(f"begins with {SECRET[:12]}", "in clear", id="a piece"),
        pytest.param(SECRET[::-1], "backwards", id="backwards"),
        pytest.param(SECRET.encode().hex(), "in hexadecimal", id="hexadecimal"),
        pytest.param(base64.b64encode(f"u:{SECRET}".encode()).decode(), "in base64", id="base64"),
        pytest.param("Frperg4711nnooppqqrrss00", "in rot13", id="rot13"),
    ],
)
def test_a_secret_is_found_in_many_forms(text: str, how: str) -> None:
    assert list(SecretFinder({"password": SECRET}).find(text)) == [("password", how)]


@pytest.mark.parametrize("text", ["", "Secret", "********", SECRET[:11], "4711 and nothing more"])
def test_what_is_no_secret_is_not_called_one(text: str) -> None:
    assert not SecretFinder({"password": SECRET}).find(text)


def test_secrets_inside_of_values_are_known_too() -> None:
    leaks = SecretFinder({"users": [{"name": "ann", "token": SECRET}]})

    assert dict(leaks.find(SECRET)) == {"users": "in clear"}


# --- comparing -----------------------------------------------------------------------------------


def test_what_is_an_orders_own_is_masked() -> None:
    order = {"name": "web-1", "nodes": [{"address": "10.1.0.5"}], "version": "4"}

    assert (
        mask_order_values(order, "web-1 at 10.1.0.5, 4 nodes")
        == "<.name> at <.nodes.0.address>, 4 nodes"
    )


# --- questions and report ------------------------------------------------------------------------


def test_a_question_brings_what_it_stands_on() -> None:
    assert select_questions(()) == set(QUESTION_NAMES)
    assert select_questions(("again",)) == {"lint", "install", "again", "bounds"}
    assert select_questions(("crash",)) == {"lint", "install", "scale", "delete", "crash", "bounds"}
    with pytest.raises(Refused, match="no question 'instal'"):
        select_questions(("instal",))


def test_the_guide_has_every_question_and_every_flag() -> None:
    page = (Path(__file__).parents[2] / "docs" / "guide" / "templates.md").read_text()
    trying = page.partition("## Trying a role")[2].partition("\n## ")[0]
    parser = argparse.ArgumentParser()
    _test(parser)
    flags = {flag for action in parser._actions for flag in action.option_strings}

    assert tuple(re.findall(r"^\| `([a-z]+)` \|", trying, re.MULTILINE)) == QUESTION_NAMES
    assert set(re.findall(r"`(--[a-z-]+)", trying)) == flags - {"-h", "--help"}


def test_the_report_says_what_was_seen_and_what_to_do() -> None:
    answers = (
        QuestionResult("lint", PASSED, "no mistakes", seconds=0.01),
        QuestionResult("again", FAILED, "it changes", ("task \x1b[2J 'Write'",), "look first", 1.5),
        QuestionResult("upgrade", SKIPPED, "nothing older"),
    )
    report = RoleTestReport("web", "web_small", "sha256:00", 7, answers, seconds=12.3)

    assert [line for one in answers for line in one.format_lines()] == [
        "✓ lint      no mistakes (0.0 s)",
        "✗ again     it changes (1.5 s)",
        "    task \\x1b[2J 'Write'",
        "    do: look first",
        "– upgrade   nothing older",
    ]
    assert not report.has_passed
    assert report.format_summary() == "web: not good: again (2 questions in 12 s, seed 7)"
    assert [one["state"] for one in report.to_dict()["questions"]] == [PASSED, FAILED, SKIPPED]


@pytest.mark.parametrize(
    "answers, good",
    [
        pytest.param((), False, id="nothing was asked"),
        pytest.param((QuestionResult("crash", SKIPPED),), False, id="everything was skipped"),
        pytest.param(
            (QuestionResult("lint", PASSED), QuestionResult("crash", SKIPPED)),
            True,
            id="nothing failed",
        ),
    ],
)
def test_only_what_was_asked_counts(answers: tuple[QuestionResult, ...], good: bool) -> None:
    assert RoleTestReport("web", "", "", 1, answers).has_passed == good


@pytest.mark.parametrize(
    "words, said",
    [
        pytest.param(["--only", "instal"], "no question 'instal'", id="no such question"),
        pytest.param(["--part-seconds", "0"], "more than 0", id="no time"),
        pytest.param(["--from", "nowhere"], "no folder 'nowhere'", id="no older folder"),
        pytest.param(["--values", "nowhere.yaml"], "nowhere.yaml", id="no values"),
    ],
)
def test_wrong_usage_is_told_before_anything_is_started(
    words: list[str], said: str, tmp_path: Any, capsys: Any
) -> None:
    folder = write(tmp_path / "web", files())

    assert main(["template", "test", str(folder), *words]) == 2
    assert said in capsys.readouterr().err
