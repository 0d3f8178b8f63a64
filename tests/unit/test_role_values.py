"""What the catalogue shows of a role's form."""

from __future__ import annotations

import pytest

from boatyard.roles.form import Form, Option
from boatyard.roles.parameter_values import definitions

PASSWORD = Option(no_log=True)


@pytest.mark.parametrize("option, secret", [
    pytest.param(Option(type="str"), False, id="a plain option"),
    pytest.param(PASSWORD, True, id="an option with no_log"),
    pytest.param(Option(type="dict", options={"password": PASSWORD}), True, id="one level down"),
    pytest.param(
        Option(type="dict", options={"options": Option(type="dict", options={"password": PASSWORD})}),
        True,
        id="two levels down",
    ),
    pytest.param(
        Option(type="list", elements="dict", options={"user": Option(), "password": PASSWORD}),
        True,
        id="in the entries of a list",
    ),
    pytest.param(Option(type="dict", options={"user": Option()}), False, id="nothing secret inside"),
])  # fmt: skip
def test_a_parameter_with_a_secret_anywhere_inside_is_kept_apart(
    option: Option, secret: bool
) -> None:
    (definition,) = definitions(Form(options={"db": option}))

    assert definition.no_log is secret


def test_the_default_of_a_parameter_with_a_secret_inside_is_not_shown() -> None:
    default = {"user": "db", "password": "hunter2"}
    options = {"user": Option(), "password": PASSWORD}
    option = Option(type="dict", has_default=True, default=default, options=options)

    (definition,) = definitions(Form(options={"db": option}))

    assert definition.default is None
