"""Orders whose template has a role: each part is run at its place, once, and the last one before anything goes."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any, cast

import msgspec
import pytest

from boatyard.automation.elsewhere import AutomationElsewhere
from boatyard.automation.port import RunEvent, RunWanted
from boatyard.model.generated.boatyard import StepState
from boatyard.model.generated.osac import ClusterRest, ClusterState, ClusterTemplate
from boatyard.model.outcome import Outcome, Owned
from boatyard.resources.cluster_templates.offering import Offering
from tests.support.roles import files
from tests.support.yard import Yard

pytestmark = pytest.mark.forms("embedded")  # a Kubernetes hub has no roles of its own to run

ALL = ("pre_install", "post_install", "validate", "scale", "delete")
ROLE: dict[str, Any] = {"template_digest": "sha256:1", "template_phases": ALL}


def ran(yard: Yard) -> list[str]:
    return [one.action for one in yard.roles.started()]


async def states(yard: Yard, cluster_id: str) -> dict[str, StepState]:
    return {step.name: step.state for step in (await yard.order_of(cluster_id)).status.steps}


async def test_every_part_is_run_at_its_place_and_once(yard: Yard) -> None:
    web = await yard.order("web", sizes={"compute": 1}, **ROLE)
    await yard.run_to(web, ClusterState.READY)
    assert ran(yard) == ["pre_install", "post_install", "validate"]
    await yard.scale(web, compute=2)
    await yard.run_to(web, ClusterState.READY)
    assert ran(yard)[3:] == ["scale", "validate"]
    await yard.run(within=timedelta(minutes=20))
    assert len(ran(yard)) == 5, "a look at a finished cluster runs nothing"
    await yard.delete(web)
    await yard.run_until_gone(web)
    assert ran(yard)[5:] == ["delete"]
    assert await yard.roles.list_owned() == []
    await yard.assert_nothing_left()


async def test_an_upgrade_runs_what_was_ordered_though_newer_content_was_published(
    yard: Yard,
) -> None:
    offering, tasks = Offering(yard.ledger), "- ansible.builtin.meta: noop\n"
    about = "id: small\ntitle: Small\nnode_sets: {compute: {host_type: bm-small, size: 1}}\n"
    first = {"meta/template.yaml": about, "tasks/validate.yaml": tasks, "tasks/delete.yaml": tasks}
    old = (await offering.offer("small", files(first), origin="a test")).status.digest
    offered = await yard.ledger.documents.get(ClusterTemplate, "small")
    assert offered is not None
    web = await yard.order(
        "web", sizes={"compute": 1}, template_digest=old, template_phases=offered.phases
    )
    await yard.run_to(web, ClusterState.READY)
    before = (await yard.order_of(web)).spec

    # Other parts, other wishes of the platform, and no room for the version that comes.
    other = about + 'platform_settings: {control_planes: "3"}\nversions: {below: "4.18"}\n'
    second = {"meta/template.yaml": other, "tasks/scale.yaml": tasks, "tasks/delete.yaml": tasks}
    newer = (await offering.offer("small", files(second), origin="a test")).status.digest
    assert newer not in ("", old)
    await yard.set_version(web, "4.18.3")
    await yard.run_to(web, ClusterState.READY)

    assert (await yard.cluster(web)).status.version == "4.18.3"
    after = (await yard.order_of(web)).spec
    kept = ("template_digest", "template_phases", "platform_settings")
    assert [getattr(after, name) for name in kept] == [getattr(before, name) for name in kept]
    await yard.delete(web)
    await yard.run_until_gone(web)
    assert ran(yard) == ["validate", "validate", "delete"]
    assert {run.digest for run in yard.roles.all_wanted} == {old}


async def test_an_order_without_a_role_has_no_steps_of_one(yard: Yard) -> None:
    web = await yard.order("web", sizes={"compute": 1})
    await yard.run_to(web, ClusterState.READY)
    assert list(await states(yard, web)) == [
        "hosts", "network", "addresses", "names", "install", "validate",
    ]  # fmt: skip
    assert ran(yard) == []


async def test_parts_of_a_role_that_decides_run_within_what_waits_for_them(yard: Yard) -> None:
    role = {**ROLE, "template_phases": ("install", "pre_install")}
    web = await yard.order("web", sizes={"compute": 1}, **role)
    await yard.run_to(web, ClusterState.READY)
    deciding, part = yard.roles.wanted["install"], yard.roles.wanted["pre_install"]
    assert (deciding.within, part.within) == ("", f"{(await yard.order_of(web)).id}/role")


class Alternating:
    """Of each run, every other look is made by a worker on a machine that runs no roles; so is the first."""

    def __init__(self, runs: Any) -> None:
        self._ways: defaultdict[str, Iterator[Any]] = defaultdict(
            lambda: itertools.cycle([AutomationElsewhere(), runs])
        )

    async def ensure_run(self, key: str, wanted: RunWanted) -> Outcome:
        return await next(self._ways[f"ensure {key}"]).ensure_run(key, wanted)

    async def release_run(self, key: str) -> Outcome:
        return await next(self._ways[f"release {key}"]).release_run(key)

    async def events(self, key: str, after: int = 0) -> Sequence[RunEvent]:
        return ()

    async def list_owned(self, prefix: str = "") -> Sequence[Owned]:
        return ()

    async def caution(self) -> str:
        return ""

    async def close(self) -> None: ...


async def test_workers_that_run_no_roles_leave_them_to_the_one_that_does(yard: Yard) -> None:
    runs, yard.roles = yard.roles, cast(Any, Alternating(yard.roles))
    yard.hubs._made.clear()  # drivers that were made before know the other
    web = await yard.order("web", sizes={"compute": 1}, **ROLE)
    await yard.run_to(web, ClusterState.READY)
    await yard.delete(web)
    await yard.run_until_gone(web)

    begun = [one.action for one in runs.started()]
    assert begun == ["pre_install", "post_install", "validate", "delete"], "each of them once"
    assert await runs.list_owned() == [], "and none is called ended that was not"
    assert await yard.leftover_of(web) is None


async def test_a_part_knows_its_order_and_what_was_reported_before(yard: Yard) -> None:
    web = await yard.order("web", sizes={"compute": 1}, **ROLE)
    await yard.run_to(web, ClusterState.READY)
    before, after = yard.roles.wanted["pre_install"], yard.roles.wanted["post_install"]
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
    assert (await yard.order_of(web)).status.facts["role.post_install"] == "done"


@pytest.mark.parametrize(
    "action, step", [("pre_install", "pre_install"), ("post_install", "post_install"), ("validate", "acceptance")]
)  # fmt: skip
async def test_a_part_that_fails_is_told_in_its_words_and_a_retry_goes_on_from_there(
    yard: Yard, action: str, step: str
) -> None:
    yard.roles.fail[action] = "task 'Make room': there is none"
    web = await yard.order("web", sizes={"compute": 1}, **ROLE)
    await yard.run_to(web, ClusterState.FAILED)
    told = await yard.explain(web, operator=False)
    assert told.blocked_by == step
    assert "task 'Make room': there is none" in told.summary
    assert "retry" in told.remedy
    before = ran(yard)
    del yard.roles.fail[action]
    await yard.retry(web)
    await yard.run_to(web, ClusterState.READY)
    assert ran(yard)[len(before)] == action
    assert ran(yard).count("pre_install") == 1 + (action == "pre_install")


async def test_a_retry_does_not_begin_anew_what_is_under_way(yard: Yard) -> None:
    yard.roles.hang.add("post_install")
    web = await yard.order("web", sizes={"compute": 1}, **ROLE)
    await yard.run(within=timedelta(minutes=2))
    assert (await states(yard, web))["post_install"] == StepState.WAITING
    await yard.retry(web)
    await yard.run(within=timedelta(minutes=1))
    assert ran(yard).count("post_install") == 1


async def test_a_deletion_ends_what_runs_and_says_the_last_word_before_anything_goes(
    yard: Yard,
) -> None:
    yard.roles.hang |= {"post_install", "delete"}
    web = await yard.order("web", sizes={"compute": 1}, **ROLE)
    await yard.run(within=timedelta(minutes=2))
    held = await yard.held(web)
    await yard.delete(web)
    await yard.run(within=timedelta(minutes=1))
    assert [one.key for one in await yard.roles.list_owned()] == [f"{web}/farewell"]
    assert await yard.held(web) == held, "something went before the role's last word"
    yard.roles.hang.clear()
    await yard.run_until_gone(web)
    await yard.assert_nothing_left()


async def test_a_last_word_that_fails_holds_the_deletion_until_its_time_is_up(yard: Yard) -> None:
    yard.roles.fail["delete"] = "task 'Take it back': it does not answer"
    web = await yard.order("web", sizes={"compute": 1}, **ROLE)
    await yard.run_to(web, ClusterState.READY)
    await yard.delete(web)
    await yard.run(within=timedelta(minutes=5))
    assert "it does not answer" in (await yard.explain(web)).summary
    await yard.run_until_gone(web)
    left = (await yard.receipt_of(web)).left
    assert "farewell" in [line.key for line in left]
    await yard.run_until_nothing_is_left()
    assert await yard.roles.list_owned() == []


async def test_a_role_is_not_run_in_a_cluster_that_rests(yard: Yard) -> None:
    web = await yard.order("web", sizes={"compute": 1}, **ROLE)
    await yard.run_to(web, ClusterState.READY)
    await yard.change(web, rest=ClusterRest.STOPPED)
    await yard.run_to(web, ClusterState.HIBERNATED)
    count = len(ran(yard))
    await yard.change(web, rest=ClusterRest.AWAKE)
    await yard.run_to(web, ClusterState.READY)
    assert ran(yard)[count:] == ["validate"]


async def test_automation_that_does_not_answer_is_waited_for(yard: Yard) -> None:
    yard.roles.dead = True
    web = await yard.order("web", sizes={"compute": 1}, **ROLE)
    await yard.run(within=timedelta(minutes=5))
    told = await yard.explain(web, operator=False)
    assert told.blocked_by == "pre_install"
    assert "what runs the template does not answer" in told.summary
    yard.roles.dead = False
    await yard.run_to(web, ClusterState.READY)


async def test_while_the_role_decides_only_what_it_asks_for_is_done(yard: Yard) -> None:
    role = {**ROLE, "template_phases": ("install",)}
    yard.roles.hang.add("install")
    web = await yard.order("web", sizes={"compute": 1}, **role)
    await yard.run(within=timedelta(minutes=5))
    assert await yard.held(web) == {}
    order = await yard.order_of(web)
    assert msgspec.structs.asdict(order.status.steps[0])["name"] == "role"
    yard.roles.hang.clear()
    await yard.run_to(web, ClusterState.READY)
