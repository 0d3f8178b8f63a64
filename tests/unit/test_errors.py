"""What an error says when only its violations are given."""

from __future__ import annotations

from boatyard.model.errors import Refused, Violation


def test_a_refusal_without_words_has_those_of_its_violations() -> None:
    error = Refused("", Violation("spec.a", "is wrong", "mend it"), Violation("", "is too much"))

    assert str(error) == "spec.a: is wrong; mend it; is too much"
    assert str(Refused("no", Violation("spec.a", "is wrong"))) == "no"
