"""A role made for OSAC, unchanged: it reads its parameters and its order where OSAC's playbooks put them."""

from __future__ import annotations

import pytest

from boatyard.automation.drivers.local.values import check_names
from boatyard.automation.port import RUN_FAILED, RunSpec
from boatyard.model import hub_names
from boatyard.model.errors import Refused
from tests.support.role_runs import RoleEnvironment, again, ended, event_texts, facts

KEY = "o-1/role"
ABOUT = """
title: OpenShift Small Cluster
default_node_request:
- resourceClass: fc430
  numberOfNodes: 2
"""
SPECS = """
argument_specs:
  install:
    options:
      cluster_order: {type: dict, required: true}
      node_requests: {type: list, elements: dict, required: true}
      template_parameters:
        type: dict
        required: true
        options:
          pull_secret: {type: str, required: true, no_log: true}
          ssh_public_key: {type: str}
          rounds: {type: int, required: true}
"""
SEEN = {
    "name": "{{ cluster_order.metadata.name }}",
    "same_name": "{{ cluster_order_name }}",
    "template": "{{ cluster_order.spec.templateID }} {{ template_id }}",
    "label": "{{ cluster_order.metadata.labels.team }}",
    "nodes": "{{ cluster_order.spec.nodeRequests | map(attribute='numberOfNodes') | sum }}",
    "classes": "{{ node_requests | map(attribute='resourceClass') | sort | join(' ') }}",
    "rounds": "{{ template_parameters.rounds + 1 }}",
    "again": "{{ (cluster_order.spec.templateParameters | from_json).rounds }}",
    "length": "{{ template_parameters.pull_secret | length }}",
    "key": "{{ template_parameters.ssh_public_key | default('none') }}",
}
SECRET = '{"auths": {"registry.example": {"auth": "cXVpdGU6c2VjcmV0"}}}'


def made_for_osac(role_environment: RoleEnvironment) -> RunSpec:
    wanted = role_environment.role(
        "ocp_small",
        {"meta/osac.yaml": ABOUT, "meta/argument_specs.yaml": SPECS},
        install=[
            {"name": "order", "ansible.builtin.debug": {"var": "cluster_order"}},
            {"name": "parameters", "ansible.builtin.debug": {"var": "template_parameters"}},
            facts(**SEEN),
        ],
    )
    return again(
        wanted,
        order={
            "id": "o-1",
            "labels": {"team": "{{ lookup('pipe', 'id') }}"},
            "node_sets": {
                "compute": {"host_type": "fc430", "size": 2},
                "gpu": {"host_type": "a100", "size": 1},
            },
        },
        values={"rounds": 3},
        secrets={"pull_secret": SECRET},
    )


@pytest.mark.parametrize("warm", [False, True], ids=["plain", "warm"])
async def test_it_reads_its_parameters_and_its_order(
    role_environment: RoleEnvironment, warm: bool
) -> None:
    wanted = made_for_osac(role_environment)
    driver = role_environment.warm_driver() if warm else role_environment.driver()

    done = await ended(driver, KEY, wanted)

    assert done.facts == {
        "name": hub_names.order_name("o-1"),
        "same_name": hub_names.order_name("o-1"),
        "template": "ocp_small ocp_small",
        "label": "{{ lookup('pipe', 'id') }}",
        "nodes": "3",
        "classes": "a100 fc430",
        "rounds": "4",
        "again": "3",
        "length": str(len(SECRET)),
        "key": "none",
    }
    events = list(await driver.events(KEY))
    assert event_texts(events, "task")[-3:] == ["order", "parameters", "report"]
    assert not any("cXVpdGU6" in event.text for event in events)


async def test_what_its_own_form_does_not_take_is_told_by_ansible(
    role_environment: RoleEnvironment,
) -> None:
    with pytest.raises(Refused, match="rounds") as refused:
        await ended(
            role_environment.driver(),
            KEY,
            again(made_for_osac(role_environment), values={"rounds": "many"}),
        )
    assert refused.value.reason == RUN_FAILED


async def test_other_roles_keep_names_of_their_own(role_environment: RoleEnvironment) -> None:
    """What is only OSAC's would hide a default of the same name."""
    defaults = {"defaults/main.yml": "node_requests: mine\ntemplate_id: mine"}
    seen = facts(mine="{{ node_requests }} {{ template_id }}", all="{{ template_parameters }}")
    wanted = again(role_environment.role("ours", defaults, post_install=[seen]), values={"size": 2})

    done = await ended(role_environment.driver(), "o-2/post_install", wanted)

    assert done.facts == {"mine": "mine mine", "all": '{"size": 2}'}


@pytest.mark.parametrize("name", ["template_parameters", "cluster_order"])
def test_no_value_takes_the_place_of_what_the_system_fills_in(name: str) -> None:
    assert check_names("values", [name])
