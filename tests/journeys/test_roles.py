"""Orders whose template has a role: each part is run at its place, once, and the last one before anything goes."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any, cast

import msgspec
import pytest

from boatyard.automation.port import RunEvent, RunSpec
from boatyard.automation.remote_automation import RemoteAutomation
from boatyard.model.generated.boatyard import StepState
from boatyard.model.generated.osac import ClusterRest, ClusterState, ClusterTemplate
from boatyard.model.outcome import Outcome, OwnedObject
from boatyard.resources.cluster_templates.publisher import TemplatePublisher
from tests.support.roles import files
from tests.support.simulated.environment import SimulatedEnvironment

pytestmark = pytest.mark.forms("embedded")  # a Kubernetes hub has no roles of its own to run

ALL = ("pre_install", "post_install", "validate", "scale", "delete")
ROLE: dict[str, Any] = {"template_digest": "sha256:1", "template_phases": ALL}


def ran(environment: SimulatedEnvironment) -> list[str]:
    return [one.action for one in environment.roles.started()]


async def states(environment: SimulatedEnvironment, cluster_id: str) -> dict[str, StepState]:
    return {step.name: step.state for step in (await environment.order_of(cluster_id)).status.steps}


async def test_every_part_is_run_at_its_place_and_once(environment: SimulatedEnvironment) -> None:
    web = await environment.order("web", sizes={"compute": 1}, **ROLE)
    await environment.run_to(web, ClusterState.READY)
    assert ran(environment) == ["pre_install", "post_install", "validate"]
    await environment.scale(web, compute=2)
    await environment.run_to(web, ClusterState.READY)
    assert ran(environment)[3:] == ["scale", "validate"]
    await environment.run(within=timedelta(minutes=20))
    assert len(ran(environment)) == 5, "a look at a finished cluster runs nothing"
    await environment.delete(web)
    await environment.run_until_gone(web)
    assert ran(environment)[5:] == ["delete"]
    assert await environment.roles.list_owned() == []
    await environment.assert_nothing_left()


async def test_an_upgrade_runs_what_was_ordered_though_newer_content_was_published(
    environment: SimulatedEnvironment,
) -> None:
    offering, tasks = TemplatePublisher(environment.ledger), "- ansible.builtin.meta: noop\n"
    about = "id: small\ntitle: Small\nnode_sets: {compute: {host_type: bm-small, size: 1}}\n"
    first = {"meta/template.yaml": about, "tasks/validate.yaml": tasks, "tasks/delete.yaml": tasks}
    old = (await offering.publish("small", files(first), origin="a test")).status.digest
    offered = await environment.ledger.documents.get(ClusterTemplate, "small")
    assert offered is not None
    web = await environment.order(
        "web", sizes={"compute": 1}, template_digest=old, template_phases=offered.phases
    )
    await environment.run_to(web, ClusterState.READY)
    before = (await environment.order_of(web)).spec

    # Other parts, other wishes of the platform, and no room for the version that comes.
    other = about + 'platform_settings: {control_planes: "3"}\nversions: {below: "4.18"}\n'
    second = {"meta/template.yaml": other, "tasks/scale.yaml": tasks, "tasks/delete.yaml": tasks}
    newer = (await offering.publish("small", files(second), origin="a test")).status.digest
    assert newer not in ("", old)
    await environment.set_version(web, "4.18.3")
    await environment.run_to(web, ClusterState.READY)

    assert (await environment.cluster(web)).status.version == "4.18.3"
    after = (await environment.order_of(web)).spec
    kept = ("template_digest", "template_phases", "platform_settings")
    assert [getattr(after, name) for name in kept] == [getattr(before, name) for name in kept]
    await environment.delete(web)
    await environment.run_until_gone(web)
    assert ran(environment) == ["validate", "validate", "delete"]
    assert {run.digest for run in environment.roles.all_wanted} == {old}


async def test_an_order_without_a_role_has_no_steps_of_one(
    environment: SimulatedEnvironment,
) -> None:
    web = await environment.order("web", sizes={"compute": 1})
    await environment.run_to(web, ClusterState.READY)
    assert list(await states(environment, web)) == [
        "hosts", "network", "addresses", "names", "install", "validate",
    ]  # fmt: skip
    assert ran(environment) == []


async def test_parts_of_a_role_that_decides_run_within_what_waits_for_them(
    environment: SimulatedEnvironment,
) -> None:
    role = {**ROLE, "template_phases": ("install", "pre_install")}
    web = await environment.order("web", sizes={"compute": 1}, **role)
    await environment.run_to(web, ClusterState.READY)
    deciding, part = environment.roles.wanted["install"], environment.roles.wanted["pre_install"]
    assert (deciding.parent_run, part.parent_run) == (
        "",
        f"{(await environment.order_of(web)).id}/role",
    )


class Alternating:
    """Of each run, every other look is made by a worker on a machine that runs no roles; so is the first."""

    def __init__(self, runs: Any) -> None:
        self._ways: defaultdict[str, Iterator[Any]] = defaultdict(
            lambda: itertools.cycle([RemoteAutomation(), runs])
        )

    async def ensure_run(self, key: str, wanted: RunSpec) -> Outcome:
        return await next(self._ways[f"ensure {key}"]).ensure_run(key, wanted)

    async def release_run(self, key: str) -> Outcome:
        return await next(self._ways[f"release {key}"]).release_run(key)

    async def events(self, key: str, after: int = 0) -> Sequence[RunEvent]:
        return ()

    async def list_owned(self, prefix: str = "") -> Sequence[OwnedObject]:
        return ()

    async def caution(self) -> str:
        return ""

    async def close(self) -> None: ...


async def test_workers_that_run_no_roles_leave_them_to_the_one_that_does(
    environment: SimulatedEnvironment,
) -> None:
    runs, environment.roles = environment.roles, cast(Any, Alternating(environment.roles))
    environment.hubs._drivers_cache.clear()  # drivers that were made before know the other
    web = await environment.order("web", sizes={"compute": 1}, **ROLE)
    await environment.run_to(web, ClusterState.READY)
    await environment.delete(web)
    await environment.run_until_gone(web)

    begun = [one.action for one in runs.started()]
    assert begun == ["pre_install", "post_install", "validate", "delete"], "each of them once"
    assert await runs.list_owned() == [], "and none is called ended that was not"
    assert await environment.leftover_of(web) is None


async def test_a_part_knows_its_order_and_what_was_reported_before(
    environment: SimulatedEnvironment,
) -> None:
    web = await environment.order("web", sizes={"compute": 1}, **ROLE)
    await environment.run_to(web, ClusterState.READY)
    before, after = (
        environment.roles.wanted["pre_install"],
        environment.roles.wanted["post_install"],
    )
    assert before.files == {}
    assert before.order["nodes"] == [
        {"slot": "compute-0", "node_set": "compute", "host": after.order["nodes"][0]["host"],
         "address": after.order["nodes"][0]["address"]}
    ]  # fmt: skip
    assert after.files["kubeconfig"]
    assert after.order["name"] == "web"
    assert after.order["tenant"] == "acme"
    assert after.order["simulated"] is True
    assert after.order["facts"] == {"pre_install": "done"}
    assert (await environment.order_of(web)).status.facts["role.post_install"] == "done"


@pytest.mark.parametrize(
    "action, step", [("pre_install", "pre_install"), ("post_install", "post_install"), ("validate", "acceptance")]
)  # fmt: skip
async def test_a_part_that_fails_is_told_in_its_words_and_a_retry_goes_on_from_there(
    environment: SimulatedEnvironment, action: str, step: str
) -> None:
    environment.roles.fail[action] = "task 'Make room': there is none"
    web = await environment.order("web", sizes={"compute": 1}, **ROLE)
    await environment.run_to(web, ClusterState.FAILED)
    told = await environment.explain(web, operator=False)
    assert told.blocked_by == step
    assert "task 'Make room': there is none" in told.summary
    assert "retry" in told.remedy
    before = ran(environment)
    del environment.roles.fail[action]
    await environment.retry(web)
    await environment.run_to(web, ClusterState.READY)
    assert ran(environment)[len(before)] == action
    assert ran(environment).count("pre_install") == 1 + (action == "pre_install")


async def test_a_retry_does_not_begin_anew_what_is_under_way(
    environment: SimulatedEnvironment,
) -> None:
    environment.roles.hang.add("post_install")
    web = await environment.order("web", sizes={"compute": 1}, **ROLE)
    await environment.run(within=timedelta(minutes=2))
    assert (await states(environment, web))["post_install"] == StepState.WAITING
    await environment.retry(web)
    await environment.run(within=timedelta(minutes=1))
    assert ran(environment).count("post_install") == 1


async def test_a_deletion_ends_what_runs_and_says_the_last_word_before_anything_goes(
    environment: SimulatedEnvironment,
) -> None:
    environment.roles.hang |= {"post_install", "delete"}
    web = await environment.order("web", sizes={"compute": 1}, **ROLE)
    await environment.run(within=timedelta(minutes=2))
    held = await environment.held(web)
    await environment.delete(web)
    await environment.run(within=timedelta(minutes=1))
    assert [one.key for one in await environment.roles.list_owned()] == [f"{web}/farewell"]
    assert await environment.held(web) == held, "something went before the role's last word"
    environment.roles.hang.clear()
    await environment.run_until_gone(web)
    await environment.assert_nothing_left()


async def test_a_last_word_that_fails_holds_the_deletion_until_its_time_is_up(
    environment: SimulatedEnvironment,
) -> None:
    environment.roles.fail["delete"] = "task 'Take it back': it does not answer"
    web = await environment.order("web", sizes={"compute": 1}, **ROLE)
    await environment.run_to(web, ClusterState.READY)
    await environment.delete(web)
    await environment.run(within=timedelta(minutes=5))
    assert "it does not answer" in (await environment.explain(web)).summary
    await environment.run_until_gone(web)
    left = (await environment.receipt_of(web)).left
    assert "farewell" in [line.key for line in left]
    await environment.run_until_nothing_is_left()
    assert await environment.roles.list_owned() == []


async def test_a_role_is_not_run_in_a_cluster_that_rests(environment: SimulatedEnvironment) -> None:
    web = await environment.order("web", sizes={"compute": 1}, **ROLE)
    await environment.run_to(web, ClusterState.READY)
    await environment.change(web, rest=ClusterRest.STOPPED)
    await environment.run_to(web, ClusterState.HIBERNATED)
    count = len(ran(environment))
    await environment.change(web, rest=ClusterRest.AWAKE)
    await environment.run_to(web, ClusterState.READY)
    assert ran(environment)[count:] == ["validate"]


async def test_automation_that_does_not_answer_is_waited_for(
    environment: SimulatedEnvironment,
) -> None:
    environment.roles.dead = True
    web = await environment.order("web", sizes={"compute": 1}, **ROLE)
    await environment.run(within=timedelta(minutes=5))
    told = await environment.explain(web, operator=False)
    assert told.blocked_by == "pre_install"
    assert "what runs the template does not answer" in told.summary
    environment.roles.dead = False
    await environment.run_to(web, ClusterState.READY)


async def test_while_the_role_decides_only_what_it_asks_for_is_done(
    environment: SimulatedEnvironment,
) -> None:
    role = {**ROLE, "template_phases": ("install",)}
    environment.roles.hang.add("install")
    web = await environment.order("web", sizes={"compute": 1}, **role)
    await environment.run(within=timedelta(minutes=5))
    assert await environment.held(web) == {}
    order = await environment.order_of(web)
    assert msgspec.structs.asdict(order.status.steps[0])["name"] == "role"
    environment.roles.hang.clear()
    await environment.run_to(web, ClusterState.READY)
