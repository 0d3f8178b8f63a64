"""What tenants write arrives byte by byte, and nothing of it is evaluated; without the mark it would be."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from boatyard.automation.drivers.local import values
from boatyard.automation.port import RunSpec
from boatyard.model.errors import BoatyardError
from tests.support.role_runs import RoleEnvironment, again, ended

KEY = "order-1/post_install"
RAN = "/run/boatyard/ran"  # where the run itself would see that something was executed

HOSTILE = [
    "{{ lookup('pipe', 'touch " + RAN + "') }}",
    "{% set x = lookup('pipe', 'touch " + RAN + "') %}{{ x }}",
    "{{ cycler.__init__.__globals__.os.popen('touch " + RAN + "').read() }}",
    "{# comment #}{{ 7 * 7 }}",
    "#jinja2: variable_start_string: '[%'\n[% 7 * 7 %]",
    "!unsafe '{{ 1 }}'",
    '!!python/object/apply:os.system ["touch ' + RAN + '"]',
    "!vault |\n  $ANSIBLE_VAULT;1.1;AES256\n  6138",
    "$ANSIBLE_VAULT;1.1;AES256\n6138",
    f"$(touch {RAN}); `touch {RAN}`; ' ; touch {RAN} #\" | touch {RAN} &&",
    "one\ntwo\r\nthree\n\n  four\t\n",
    "\n- hosts: localhost\n  tasks: []\n",
    '"}], ? "x" : !unsafe {"a": 1}, "y": [{',
    "*anchor", "&anchor a", "<<", "? :", "---\n...\n", "%YAML 1.1", "- a", "a: b", "# not a comment",
    "5", "5.0", "1e3", "0o17", "0x1f", "1_000", "yes", "no", "on", "null", "~", "", " ", "true",
    "2020-01-01", "12:30:45", ".inf", "=",
    "Grüße 世界 😀 \u202eabc\u2028\u2029\x85\ufeff\u200b\xa0 e\u0301",
    "\x00\x01\x1b[31m\x7f\x9f", "\\n \\x41 \\u0041 \\", "'\"'\"'",
    "x" * 5000,
    "__ansible_unsafe", '{"__ansible_unsafe": "{{ 1 }}"}', "omit", "{{ omit }}",
]  # fmt: skip

# Each way a value can go through a role: looked at, templated, copied, looped over, given to a module and to a shell.
ROLE: list[dict[str, Any]] = [
    {"name": "template", "ansible.builtin.set_fact": {"copied": "{{ texts }}"}},
    {"name": "again", "ansible.builtin.set_fact": {"copied": "{{ copied }}"}},
    {"name": "loop", "ansible.builtin.debug": {"msg": "{{ item }}"}, "loop": "{{ texts[:12] }}"},
    {"name": "{{ texts[0] }}", "ansible.builtin.debug": {"msg": "{{ order_name }} {{ texts[0] }}"}},
    {"name": "keys", "ansible.builtin.debug": {"msg": "{{ keyed | dict2items }}"}},
    {
        "name": "write",
        "ansible.builtin.copy": {
            "content": "{{ {'texts': copied, 'keyed': keyed, 'order': boatyard_order} | to_json }}",
            "dest": "/run/boatyard/arrived.json",
            "mode": "0600",
        },
    },
    {
        "name": "shell",
        "ansible.builtin.shell": "printf %s {{ texts[9] | quote }} > /run/boatyard/quoted",
    },
    {
        "name": "look",
        "ansible.builtin.set_fact": {
            "arrived": "{{ lookup('file', '/run/boatyard/arrived.json', rstrip=false) | b64encode }}",
            "quoted": "{{ lookup('file', '/run/boatyard/quoted', rstrip=false) | b64encode }}",
            "ran": "{{ '" + RAN + "' is exists }}",
        },
    },
    {
        "name": "report",
        "boatyard.service.facts": {
            "arrived": "{{ arrived }}",
            "quoted": "{{ quoted }}",
            "ran": "{{ ran }}",
            "direct": "{{ texts[0] }}",
        },
    },
]  # fmt: skip


def hostile_run(role_environment: RoleEnvironment) -> RunSpec:
    wanted = role_environment.role("careful", post_install=ROLE)
    return again(
        wanted,
        values={
            "texts": HOSTILE,
            "order_name": HOSTILE[0],
            "keyed": {text: {text: [text]} for text in HOSTILE},
        },
        order={
            "name": HOSTILE[0],
            "display_name": HOSTILE[2],
            "labels": {HOSTILE[0]: HOSTILE[1]},
            "annotations": {HOSTILE[10]: HOSTILE[11]},
            "hosts": [{"name": text} for text in HOSTILE],
            "numbers": [1e300, -0.5, 2**80, True, None],
        },
    )


@pytest.mark.parametrize("warm", [False, True], ids=["plain", "warm"])
async def test_everything_arrives_as_it_was_sent_and_nothing_runs(
    role_environment: RoleEnvironment, warm: bool
) -> None:
    wanted = hostile_run(role_environment)
    driver = role_environment.warm_driver() if warm else role_environment.driver()

    done = await ended(driver, KEY, wanted)

    assert done.facts["ran"] == "false"
    assert done.facts["direct"] == HOSTILE[0]
    arrived = json.loads(base64.b64decode(done.facts["arrived"]))
    assert arrived["texts"] == HOSTILE
    assert arrived["keyed"] == wanted.values["keyed"]
    assert arrived["order"] == wanted.order
    assert base64.b64decode(done.facts["quoted"]).decode() == HOSTILE[9]


async def test_without_the_mark_it_would_have_run(
    role_environment: RoleEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(values, "UNSAFE_TAG", "")
    tasks = [
        {"name": "use", "ansible.builtin.debug": {"msg": "{{ text }}"}},
        {"name": "report", "boatyard.service.facts": {"ran": "{{ '" + RAN + "' is exists }}"}},
    ]
    wanted = again(
        role_environment.role("careless", post_install=tasks), values={"text": HOSTILE[0]}
    )

    done = await ended(role_environment.driver(), KEY, wanted)

    assert done.facts["ran"] == "true"


@pytest.mark.parametrize(
    "name",
    [
        "ansible_connection",
        "ansible_python_interpreter",
        "ansible_become",
        "boatyard_order",
        "hostvars",
        "role_path",
        "a-b",
        "{{ 1 }}",
        "",
        "a.b",
    ],
)
async def test_a_parameter_cannot_steer_ansible(
    role_environment: RoleEnvironment, name: str
) -> None:
    wanted = role_environment.role("steered", post_install=[])

    for field in ("values", "secrets"):
        with pytest.raises(BoatyardError, match=rf"{field}\."):
            await role_environment.driver().ensure_run(KEY, again(wanted, **{field: {name: "x"}}))
