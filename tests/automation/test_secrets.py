"""A secret is used by the role and shown nowhere: no event, error, fact, file or command line holds it."""

from __future__ import annotations

import logging

import pytest

from boatyard.automation.port import RunSpec
from boatyard.model.errors import Refused
from tests.support.role_runs import (
    RoleEnvironment,
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


def careless(role_environment: RoleEnvironment, *more: dict[str, object]) -> RunSpec:
    wanted = role_environment.role(
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
    role_environment: RoleEnvironment, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    driver = role_environment.driver()
    wanted = careless(role_environment, facts(secret="{{ password }}", good="seen"))

    done = await ended(driver, KEY, wanted)

    assert done.facts["good"] == "seen"
    assert_nowhere(*done.facts.values(), caplog.text, repr(wanted))
    assert_nowhere(*(f"{event.task} {event.text}" for event in await driver.events(KEY)))
    assert_nowhere(*(path.read_text(errors="replace") for path in role_environment.everything()))


async def test_an_error_does_not_tell_it(role_environment: RoleEnvironment) -> None:
    driver = role_environment.driver()
    wanted = careless(
        role_environment, {"ansible.builtin.fail": {"msg": "no: {{ password }} {{ nested }}"}}
    )

    with pytest.raises(Refused) as refused:
        await ended(driver, KEY, wanted)

    assert "no: ****" in str(refused.value)
    assert_nowhere(str(refused.value))


async def test_ansibles_own_check_of_a_wrong_one_does_not_tell_it(
    role_environment: RoleEnvironment,
) -> None:
    wanted = role_environment.role(
        "checked", {"meta/argument_specs.yml": SPEC}, post_install=[debug("{{ password }}")]
    )

    with pytest.raises(Refused, match="password") as refused:
        await ended(role_environment.driver(), KEY, again(wanted, secrets={"password": SECRET}))

    assert_nowhere(str(refused.value))


async def test_no_command_line_and_no_file_of_ours_holds_it_while_it_runs(
    role_environment: RoleEnvironment,
) -> None:
    driver = role_environment.driver()
    wanted = careless(role_environment, shell("sleep 1000", "hold"))

    await at_task(driver, KEY, wanted, "hold")

    assert_nowhere(*processes_with(str(role_environment.data)).values())
    assert processes_with("second line of it") == {}
    assert_nowhere(*(path.read_text(errors="replace") for path in role_environment.everything()))


async def test_without_hiding_it_would_be_seen(role_environment: RoleEnvironment) -> None:
    wanted = careless(role_environment)
    told_as_value = again(wanted, values=wanted.secrets, secrets={})
    driver = role_environment.driver()

    await ended(driver, KEY, told_as_value)

    texts = "".join(event.text for event in await driver.events(KEY))
    assert "second line" in texts


KUBECONFIG = """
apiVersion: v1
kind: Config
clusters: [{name: a, cluster: {server: "https://a.example:6443"}}]
users:
- name: admin
  user: {client-key-data: LS0tLS1CRUdJTiBLRVktLS0tLQpNSUdIQWdFQU1CTUdCeXFHU000OQo=}
- {name: other, user: {token: eyJhbGciOi.abcdef}}
- {name: odd, user: none}
- odd
"""


async def test_the_keys_of_its_kubeconfig_are_shown_nowhere(
    role_environment: RoleEnvironment,
) -> None:
    wanted = role_environment.role(
        "curious",
        post_install=[
            shell("cat {{ boatyard_files.kubeconfig }}", "look", register="out"),
            debug("{{ out.stdout }}"),
            debug("{{ (out.stdout | from_yaml).users[0].user['client-key-data'] | b64decode }}"),
            facts(server="{{ (out.stdout | from_yaml).clusters[0].cluster.server }}"),
        ],
    )
    driver = role_environment.driver()

    done = await ended(driver, KEY, again(wanted, files={"kubeconfig": KUBECONFIG}))

    assert done.facts == {"server": "https://a.example:6443"}
    texts = "".join(event.text for event in await driver.events(KEY))
    assert "client-key-data: ********" in texts
    for part in ("MIGHAgEA", "TUlHSEFn", "eyJhbGci"):
        assert part not in texts


PHRASE = "correct-horse-battery-staple-and-then-some-more"


async def test_what_was_ignored_is_told_so_however_much_it_says(
    role_environment: RoleEnvironment,
) -> None:
    """The cut goes through the last of many secrets, and the remark stands behind it."""
    fail = {"ansible.builtin.fail": {"msg": "{{ password * 3000 }}"}, "ignore_errors": True}
    wanted = again(role_environment.role("long", post_install=[fail]), secrets={"password": PHRASE})
    driver = role_environment.driver()

    await ended(driver, KEY, wanted)

    (failed,) = [event.text for event in await driver.events(KEY) if event.kind == "failed"]
    assert failed.endswith(" (ignored)")
    assert "corr" not in failed
