"""A secret is used by the role and shown nowhere: no event, error, fact, file or command line holds it."""

from __future__ import annotations

import logging

import pytest

from boatyard.automation.port import RunWanted
from boatyard.model.errors import Refused
from tests.support.automation import (
    Site,
    again,
    at_task,
    debug,
    ended,
    facts,
    processes_with,
    shell,
)

KEY = "order-1/post_install"
SECRET = 'h"unter\\2 pässwörd\nsecond line of it'
LINES = ("unter", "second line", "aCJ1bnRlcl")  # the last as base64
SPEC = """
argument_specs:
  post_install:
    options:
      password: {type: int, no_log: true}
"""


def careless(site: Site, *more: dict[str, object]) -> RunWanted:
    wanted = site.role(
        "careless",
        post_install=[
            debug("it is {{ password }}"),
            {"name": "named {{ password }}", "ansible.builtin.debug": {"msg": "{{ nested }}"}},
            debug("{{ password | to_json }} {{ password | b64encode }} {{ password | urlencode }}"),
            shell("printf %s {{ password | quote }}", "print", register="out"),
            {"name": "show", "ansible.builtin.debug": {"var": "out"}},
            {"name": "quiet", "ansible.builtin.debug": {"msg": "x{{ password }}"}, "no_log": True},
            *more,
        ],
    )
    return again(wanted, secrets={"password": SECRET, "nested": {"tokens": ["tok-12345", 987654]}})


def assert_nowhere(*texts: str) -> None:
    for text in texts:
        for part in (*LINES, "tok-12345", "987654"):
            assert part not in text, f"{part} in {text[:300]}"


async def test_what_a_careless_role_says_is_blotted_out(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    driver = site.driver()
    wanted = careless(site, facts(secret="{{ password }}", good="seen"))

    done = await ended(driver, KEY, wanted)

    assert done.facts["good"] == "seen"
    assert_nowhere(*done.facts.values(), caplog.text, repr(wanted))
    assert_nowhere(*(f"{event.task} {event.text}" for event in await driver.events(KEY)))
    assert_nowhere(*(path.read_text(errors="replace") for path in site.everything()))


async def test_an_error_does_not_tell_it(site: Site) -> None:
    driver = site.driver()
    wanted = careless(site, {"ansible.builtin.fail": {"msg": "no: {{ password }} {{ nested }}"}})

    with pytest.raises(Refused) as refused:
        await ended(driver, KEY, wanted)

    assert "no: ****" in str(refused.value)
    assert_nowhere(str(refused.value))


async def test_ansibles_own_check_of_a_wrong_one_does_not_tell_it(site: Site) -> None:
    wanted = site.role(
        "checked", {"meta/argument_specs.yml": SPEC}, post_install=[debug("{{ password }}")]
    )

    with pytest.raises(Refused, match="password") as refused:
        await ended(site.driver(), KEY, again(wanted, secrets={"password": SECRET}))

    assert_nowhere(str(refused.value))


async def test_no_command_line_and_no_file_of_ours_holds_it_while_it_runs(site: Site) -> None:
    driver = site.driver()
    wanted = careless(site, shell("sleep 1000", "hold"))

    await at_task(driver, KEY, wanted, "hold")

    assert_nowhere(*processes_with(str(site.data)).values())
    assert processes_with("second line of it") == {}
    assert_nowhere(*(path.read_text(errors="replace") for path in site.everything()))


async def test_without_hiding_it_would_be_seen(site: Site) -> None:
    wanted = careless(site)
    told_as_value = again(wanted, values=wanted.secrets, secrets={})
    driver = site.driver()

    await ended(driver, KEY, told_as_value)

    texts = "".join(event.text for event in await driver.events(KEY))
    assert "second line" in texts
