"""The checks port's promises, for every driver."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from boatyard.checks.port import Subject
from boatyard.model.outcome import Done, Waiting
from boatyard.platforms.port import ClusterWanted, NodeWanted
from tests.contracts.bench import Bench
from tests.contracts.rules import Rule, refuses, rules_of, unavailable

PORT = "checks"
pytestmark = pytest.mark.asyncio(loop_scope="module")


async def questions_are_always_the_same(bench: Bench) -> None:
    names = list(bench.checks.names())
    assert names == list(bench.checks.names())
    assert len(set(names)) == len(names) > 0


async def a_finished_cluster_answers_every_question(bench: Bench) -> None:
    subject = await _finished(bench)
    for name in bench.checks.names():
        assert await bench.checks.ask(name, subject) == Done(), name


async def asking_changes_nothing_that_stays(bench: Bench) -> None:
    subject = await _finished(bench)
    ports = (bench.inventory, bench.l2, bench.l3, bench.dns, bench.platform)
    before = [await port.list_owned() for port in ports]
    for name in bench.checks.names():
        await bench.checks.ask(name, subject)
        await bench.checks.ask(name, subject)
    assert [await port.list_owned() for port in ports] == before


async def a_cluster_that_is_not_there_is_waited_for(bench: Bench) -> None:
    subject = replace(await _finished(bench), cluster_key="order-9/cluster")
    assert await _unanswered(bench, subject)


async def a_missing_node_is_found(bench: Bench) -> None:
    subject = await _finished(bench)
    assert await _unanswered(bench, replace(subject, slots=(*subject.slots, "compute-7")))


async def a_lost_node_is_found(bench: Bench) -> None:
    subject = await _finished(bench)
    (held,) = await bench.inventory.list_owned("order-1/")
    await bench.break_host(held.name)
    assert await _unanswered(bench, subject)


async def a_wrong_version_is_found(bench: Bench) -> None:
    subject = await _finished(bench)
    assert await _unanswered(bench, replace(subject, version="4.99.0"))


async def a_missing_name_is_found(bench: Bench) -> None:
    subject = await _finished(bench)
    await bench.until_done(lambda: bench.dns.release_record("order-1/api-name"))
    assert await _unanswered(bench, subject)


async def a_name_that_points_elsewhere_is_found(bench: Bench) -> None:
    subject = await _finished(bench)
    ask = ("order-1/api-name", subject.api_name, subject.ingress_address)
    await bench.until_done(lambda: bench.dns.ensure_record(*ask))
    assert await _unanswered(bench, subject)


@pytest.mark.parametrize("key", ["order-1/api-address", "order-1/ingress-address"])
async def test_a_missing_route_is_found(key: str, bench: Bench) -> None:
    subject = await _finished(bench)
    await bench.until_done(lambda: bench.l3.release_floating(key))
    assert await _unanswered(bench, subject)


async def what_cannot_be_asked_is_unavailable(bench: Bench) -> None:
    subject = await _finished(bench)
    await bench.checks.check_ready()
    await bench.misbehave("checks", "dead")
    await unavailable(bench.checks.check_ready())
    for name in bench.checks.names():
        await unavailable(bench.checks.ask(name, subject))


async def an_unknown_question_is_refused(bench: Bench) -> None:
    subject = await _finished(bench)
    await refuses(bench.checks.ask("no-such-question", subject))


async def closing_twice_is_fine(bench: Bench) -> None:
    await bench.checks.close()
    await bench.checks.close()


async def _unanswered(bench: Bench, subject: Subject) -> list[str]:
    """The questions that are answered with no, each with a reason in words."""
    answers = {name: await bench.checks.ask(name, subject) for name in bench.checks.names()}
    waiting = {name: answer for name, answer in answers.items() if isinstance(answer, Waiting)}
    assert all(answer.why for answer in waiting.values())
    return list(waiting)


async def _finished(bench: Bench) -> Subject:
    """A whole cluster with one node, made through the other ports."""
    order = "order-1"
    host, address = await bench.joined_host(order, "compute-0")
    cidr, zone = (await bench.l3.subnets())[0], await bench.dns.zone()
    api, ingress = (await bench.l3.floating_addresses())[:2]
    names = f"api.one.{zone}", f"*.apps.one.{zone}"
    wanted = ClusterWanted(
        name="one",
        version="4.17.1",
        release_image="",
        pod_cidr="",
        service_cidr="",
        machine_cidr=cidr,
        gateway="",
        ssh_public_key="",
        pull_secret="",
        api_name=names[0],
        api_address=api,
        ingress_name=names[1],
        ingress_address=ingress,
    )
    node = NodeWanted("compute-0", "compute", host, address)
    subnet, cluster = f"{order}/l3", f"{order}/cluster"
    for ask in (
        partial(bench.l3.ensure_network, subnet, cidr),
        partial(bench.l3.ensure_binding, f"{order}/binding", subnet, f"{order}/l2"),
        partial(bench.l3.ensure_floating, f"{order}/api-address", api, subnet, "api"),
        partial(bench.l3.ensure_floating, f"{order}/ingress-address", ingress, subnet, "ingress"),
        partial(bench.dns.ensure_record, f"{order}/api-name", names[0], api),
        partial(bench.dns.ensure_record, f"{order}/ingress-name", names[1], ingress),
        partial(bench.platform.ensure_cluster, cluster, wanted),
        partial(bench.platform.ensure_node, f"{order}/node/compute-0", cluster, node),
    ):
        await bench.until_done(ask)
    return Subject(cluster, names[0], api, names[1], ingress, ("compute-0",), "4.17.1")


@pytest.mark.parametrize("rule", rules_of(globals()), ids=lambda rule: rule.__name__)
async def test_checks(rule: Rule, bench: Bench) -> None:
    await rule(bench)
