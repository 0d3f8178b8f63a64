"""A set of roles that use what Ansible offers beside a playbook: by command line and warm, the same story and facts."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest

from boatyard.automation.drivers.local.warm_starter import WarmStarter
from boatyard.automation.port import RUN_FAILED, RunEvent, RunSpec
from boatyard.model.errors import Refused
from boatyard.model.outcome import Done
from tests.support.role_runs import RoleEnvironment, again, ended, facts, released

KEY = "order-1/post_install"
PASSWORD = "open-sesame-4711"
MODULE = """
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.{utils} import word

def main():
    module = AnsibleModule(argument_spec={{"text": {{"type": "str"}}}})
    module.exit_json(changed=True, said=word() + module.params["text"])

if __name__ == "__main__":
    main()
"""
FILTER = """
class FilterModule:
    def filters(self):
        return {"NAME": lambda text: "WORD" + text}
"""
ACTION = """
from ansible.plugins.action import ActionBase

class ActionModule(ActionBase):
    def run(self, tmp=None, task_vars=None):
        return {**super().run(tmp, task_vars), "said": "acted " + self._task.args["text"]}
"""
LOOKUP = """
from ansible.plugins.lookup import LookupBase

class LookupModule(LookupBase):
    def run(self, terms, variables=None, **kwargs):
        return ["looked up " + term for term in terms]
"""
ROLE = """
- name: variables
  set_fact:
    seen: "{{ [from_group, from_host, from_vault, from_defaults, from_vars, parameter] }}"
- name: adjacent module
  adjacent_module: {text: "{{ parameter }}"}
  register: one
- name: module of the role
  role_module: {text: a}
  register: two
- name: module of a collection
  acme.tools.collected: {text: b}
  register: three
- name: action of the role
  role_action: {text: c}
  register: four
- name: filters and lookups
  set_fact:
    five: >-
      {{ ['x' | adjacent_filter, 'y' | role_filter, 'z' | acme.tools.collected_filter,
          lookup('role_lookup', 'w')] }}
- name: role of a collection
  include_role: {name: acme.tools.helper}
- name: template
  template: {src: note.j2, dest: "{{ boatyard_files.note }}.out", mode: "0600"}
  notify: tell
- name: flush
  meta: flush_handlers
- name: rescue
  block:
    - {name: breaks, fail: {msg: broken}}
  rescue:
    - {name: mended, debug: {msg: "{{ ansible_failed_result.msg }}"}}
- {name: ignored, fail: {msg: never mind}, ignore_errors: true}
- {name: skipped, debug: {msg: no}, when: false}
- name: until
  command: "true"
  register: tries
  until: tries is succeeded
  retries: 2
  changed_when: false
- {name: imported, import_tasks: more.yaml}
- name: loop
  debug: {msg: "{{ item }}"}
  loop: [1, 2]
- name: included
  include_tasks: more.yaml
- name: report
  boatyard.service.facts:
    seen: "{{ seen }}"
    said: "{{ [one.said, two.said, three.said, four.said] }}"
    five: "{{ five }}"
    helped: "{{ helped }}"
    told: "{{ told }}"
    note: "{{ lookup('file', boatyard_files.note ~ '.out') }}"
    python: "{{ ansible_playbook_python is exists }}"
    home: "{{ lookup('env', 'HOME') }}"
    shell_home: "{{ lookup('pipe', 'echo $HOME') }}"
"""


def project(role_environment: RoleEnvironment) -> RunSpec:
    root, role, collection = (
        "whole",
        "whole/roles/everything",
        "whole/collections/ansible_collections/acme/tools",
    )
    files = {
        f"{root}/group_vars/all/plain.yml": "from_group: group",
        f"{root}/host_vars/localhost.yml": "from_host: host",
        f"{root}/library/adjacent_module.py": MODULE.format(utils="adjacent_words"),
        f"{root}/module_utils/adjacent_words.py": "def word(): return 'adjacent '",
        f"{root}/filter_plugins/f.py": named(FILTER, "adjacent_filter"),
        f"{role}/library/role_module.py": MODULE.format(utils="role_words"),
        f"{role}/module_utils/role_words.py": "def word(): return 'role '",
        f"{role}/filter_plugins/f.py": named(FILTER, "role_filter"),
        f"{role}/action_plugins/role_action.py": ACTION,
        f"{role}/lookup_plugins/role_lookup.py": LOOKUP,
        f"{role}/defaults/main.yml": "from_defaults: defaults\nparameter: unset",
        f"{role}/vars/main.yml": "from_vars: vars",
        f"{role}/templates/note.j2": "for {{ parameter }}",
        f"{role}/handlers/main.yml": "- {name: tell, set_fact: {told: 'yes'}}",
        f"{role}/meta/argument_specs.yml": "argument_specs: {post_install: {options: {parameter: {type: str}}}}",
        f"{role}/tasks/post_install.yaml": ROLE,
        f"{role}/tasks/more.yaml": "- {name: more, debug: {msg: more}}",
        f"{collection}/plugins/modules/collected.py": MODULE.format(utils="X").replace(
            "ansible.module_utils.X", "ansible_collections.acme.tools.plugins.module_utils.words"
        ),
        f"{collection}/plugins/module_utils/words.py": "def word(): return 'collected '",
        f"{collection}/plugins/filter/f.py": named(FILTER, "collected_filter"),
        f"{collection}/roles/helper/tasks/main.yml": "- {name: help, set_fact: {helped: 'yes'}}",
    }  # fmt: skip
    for path, text in files.items():
        role_environment.write(path, text)
    role_environment.write("password", PASSWORD)
    role_environment.write("vault.yml", "from_vault: vault")
    subprocess.run(
        [
            *(
                role_environment.environment.playbook.with_name("ansible-vault"),
                "encrypt",
                "vault.yml",
            ),
            *("--vault-password-file", "password", "--output", "whole/group_vars/all/vault.yml"),
        ],
        cwd=role_environment.content,
        check=True,
        capture_output=True,
    )
    # Runs have a number of their own: content is for everybody to read.
    (role_environment.content / "whole/group_vars/all/vault.yml").chmod(0o644)
    return RunSpec(
        action="post_install",
        template="everything",
        digest="whole",
        values={"parameter": "{{ me }}"},
        files={"vault_password": PASSWORD, "note": ""},
    )


def named(plugin: str, name: str) -> str:
    return plugin.replace("NAME", name).replace("WORD", f"{name} ")


def story(events: list[RunEvent]) -> list[tuple[str, str, str]]:
    return [(event.kind, event.task, event.text) for event in events]


async def run(
    role_environment: RoleEnvironment, wanted: RunSpec, *, warm: bool
) -> tuple[Any, list[tuple[str, str, str]]]:
    shop = role_environment.shop(warm=warm)
    driver = role_environment.driver_of(shop)
    if warm:
        assert isinstance(shop.starter, WarmStarter)
        assert shop.starter.warm_up(shop.get_capabilities()), (
            role_environment.data / "warm.log"
        ).read_text()
    outcome: Any
    try:
        outcome = await ended(driver, KEY, wanted)
    except Refused as refused:
        outcome = (refused.reason, str(refused))
    events = story(list(await driver.events(KEY)))
    await released(driver, KEY)
    if isinstance(shop.starter, WarmStarter):
        assert shop.starter.forked_runs == 1
    shop.close()
    return outcome, events


async def test_everything_a_project_may_bring(role_environment: RoleEnvironment) -> None:
    wanted = project(role_environment)

    plain, plain_story = await run(role_environment, wanted, warm=False)
    warm, warm_story = await run(role_environment, wanted, warm=True)

    assert plain == Done(
        {
            "seen": '["group", "host", "vault", "defaults", "vars", "{{ me }}"]',
            "said": '["adjacent {{ me }}", "role a", "collected b", "acted c"]',
            "five": '["adjacent_filter x", "role_filter y", "collected_filter z", "looked up w"]',
            "helped": "yes",
            "told": "yes",
            "note": "for {{ me }}",
            "python": "true",
            "home": "/run/boatyard",
            "shell_home": "/run/boatyard",
        }
    )
    assert warm == plain
    assert warm_story == plain_story
    assert ("ok", "mended", "broken") in plain_story
    assert [task for kind, task, _ in plain_story if kind == "skipped"] == ["skipped"]


OURS = """
- {name: plain, boatyard.service.progress: {message: "{{ x }}"}, vars: {x: one}, register: first}
- {name: again, boatyard.service.progress: {message: "{{ first.msg }} two"}, when: first is succeeded}
- {name: not now, boatyard.service.progress: {message: no}, when: false}
- {name: looped, boatyard.service.progress: {message: "{{ item }}"}, loop: [a, b]}
- {name: quiet, boatyard.service.progress: {message: hush}, no_log: true}
- {name: patient, boatyard.service.progress: {message: yes it is}, register: p, until: p is succeeded}
- name: mended
  block:
    - {name: wrong, boatyard.service.progress: {message: [no text]}}
  rescue:
    - {name: told, boatyard.service.facts: {why: "{{ ansible_failed_result.msg }}"}}
- {name: undefined, boatyard.service.progress: {message: "{{ nowhere }}"}, ignore_errors: true}
- {name: notifies, boatyard.service.progress: {message: x}, changed_when: true, notify: handled}
- {name: delegated, boatyard.service.facts: {where: "{{ inventory_hostname }}"}, delegate_to: localhost}
- {name: nothing, boatyard.service.facts: {}}
"""


async def test_tasks_of_our_own(role_environment: RoleEnvironment) -> None:
    """Warm, they run without a worker: nobody can tell but by the time they take."""
    handlers = "- {name: handled, boatyard.service.progress: {message: handled}}"
    wanted = role_environment.role("ours", {"handlers/main.yml": handlers}, post_install=[])
    role_environment.write("ours/tasks/post_install.yaml", OURS)

    plain, plain_story = await run(role_environment, wanted, warm=False)
    warm, warm_story = await run(role_environment, wanted, warm=True)

    assert "name at least one fact" in plain[1]
    assert warm == plain
    assert warm_story == plain_story
    assert ("ok", "again", "one two") in plain_story


BROKEN = {
    "a task fails": "- {name: stop, fail: {msg: enough}}",
    "a variable is missing": "- {name: use, debug: {msg: '{{ nowhere }}'}}",
    "no YAML": "- {name: [",
    "no list": "name: x",
    "no such module": "- {name: x, no_such_module: {}}",
    "no such keyword": "- {name: x, debug: {msg: a}, whenever: true}",
    "a module that is killed": "- {name: x, shell: kill -9 $PPID}",
    "a loop that fails": "- {name: x, fail: {msg: '{{ item }}'}, loop: [a, b]}",
    "a wrong vault": "- {name: x, debug: {msg: '{{ v }}'}, vars: {v: !vault '6138'}}",
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN.keys())
async def test_what_goes_wrong_is_told_alike(role_environment: RoleEnvironment, text: str) -> None:
    wanted = role_environment.role("broken", post_install=[])
    role_environment.write("broken/tasks/post_install.yaml", text)

    plain, plain_story = await run(role_environment, wanted, warm=False)
    warm, warm_story = await run(role_environment, wanted, warm=True)

    assert plain[0] == RUN_FAILED
    assert warm == plain
    assert warm_story == plain_story


async def test_one_run_leaves_no_trace_in_the_next(role_environment: RoleEnvironment) -> None:
    """Both are forked of one server: plugins, facts and chance of the first are not those of the second."""
    report = facts(
        chance="{{ 100000000 | random }}",
        known="{{ planted | default('nothing') }}",
        filter="{{ 'a' | theirs }}",
    )
    set_fact = {"ansible.builtin.set_fact": {"planted": "something"}}
    first = role_environment.role(
        "first", {"filter_plugins/f.py": named(FILTER, "theirs")}, post_install=[set_fact, report]
    )
    second = role_environment.role(
        "second",
        {"filter_plugins/f.py": named(FILTER, "theirs").replace("theirs ", "others ")},
        post_install=[report],
    )
    shop = role_environment.shop()
    assert isinstance(shop.starter, WarmStarter)
    assert shop.starter.warm_up(shop.get_capabilities())
    driver = role_environment.driver_of(shop)

    one = await ended(driver, KEY, first)
    two = await ended(driver, "order-2/post_install", second)
    three = await ended(driver, "order-3/post_install", again(second))

    assert shop.starter.forked_runs == 3
    assert (one.facts["known"], one.facts["filter"]) == ("something", "theirs a")
    assert (two.facts["known"], two.facts["filter"]) == ("nothing", "others a")
    assert two.facts["chance"] != three.facts["chance"]
