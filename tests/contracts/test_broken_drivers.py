"""The contract suites are seen to fail: each planted fault makes the rule that forbids it fail."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from boatyard.model.errors import BoatyardError, Refused, Unavailable
from boatyard.model.outcome import Done, OwnedObject, Waiting
from boatyard.platforms.port import HAS_NODES, RestMode
from tests.contracts import test_checks, test_dns, test_inventory, test_l2, test_l3, test_platform
from tests.contracts.providers import PROVIDERS
from tests.contracts.rules import Rule

EFFECTS = ("ensure_", "release_")


class BrokenDriver:
    """A driver with one fault; everything else it passes on to a good one."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver
        self.calls = 0

    def __getattr__(self, name: str) -> Any:
        verb = getattr(self.driver, name)
        if not name.startswith(EFFECTS):
            return verb

        async def effect(key: str, *args: Any) -> Any:
            self.calls += 1
            return await self.act(name, verb, key, *args)

        return effect

    async def act(self, name: str, verb: Callable[..., Any], key: str, *args: Any) -> Any:
        return await verb(key, *args)


class ForgetsKeys(BrokenDriver):
    """Makes things under keys of its own."""

    async def act(self, name: str, verb: Callable[..., Any], key: str, *args: Any) -> Any:
        return await verb(f"thing-{self.calls}/x", *args)


class MakesAgain(BrokenDriver):
    """Asked for the same thing again, it makes a second one beside it."""

    def __init__(self, driver: Any) -> None:
        super().__init__(driver)
        self.made: dict[tuple[str, str], int] = {}

    async def act(self, name: str, verb: Callable[..., Any], key: str, *args: Any) -> Any:
        times = self.made[name, key] = self.made.get((name, key), 0) + 1
        if not name.startswith("ensure_") or times == 1:
            return await verb(key, *args)
        try:
            return await verb(f"{key}-{times}", *args)
        except Refused:
            return Waiting("again")


class TakesFromOthers(BrokenDriver):
    """Releases and re-makes whatever stands in the way, whosever it is."""

    async def act(self, name: str, verb: Callable[..., Any], key: str, *args: Any) -> Any:
        try:
            return await verb(key, *args)
        except Refused:
            for owned in await self.driver.list_owned():
                with contextlib.suppress(Refused):
                    return await verb(owned.key, *args)
            raise


class MindsNothing(BrokenDriver):
    """Fails when there is nothing to release."""

    async def act(self, name: str, verb: Callable[..., Any], key: str, *args: Any) -> Any:
        owned = {thing.key for thing in await self.driver.list_owned()}
        if name.startswith("release_") and key not in owned:
            raise Unavailable("there is nothing to release")
        return await verb(key, *args)


class KeepsEverything(BrokenDriver):
    """Says that it released, and did not."""

    async def act(self, name: str, verb: Callable[..., Any], key: str, *args: Any) -> Any:
        return Done() if name.startswith("release_") else await verb(key, *args)


class BelievesEverything(BrokenDriver):
    """Says Done without looking whether it is so."""

    async def act(self, name: str, verb: Callable[..., Any], key: str, *args: Any) -> Any:
        try:
            return await verb(key, *args)
        except Unavailable as error:
            if error.reason == "NotConfirmed":
                return Done()
            raise


class HidesOutages(BrokenDriver):
    """Answers Waiting when its service does not answer at all."""

    async def act(self, name: str, verb: Callable[..., Any], key: str, *args: Any) -> Any:
        try:
            return await verb(key, *args)
        except Unavailable:
            return Waiting("a little patience")


class ListsLoosely(BrokenDriver):
    """Names things whose key does not begin with the prefix."""

    async def list_owned(self, prefix: str = "") -> Any:
        return await self.driver.list_owned(prefix.rstrip("/"))


class RemembersNames(BrokenDriver):
    """Answers for a name what it once answered, whatever the zone says now."""

    def __init__(self, driver: Any) -> None:
        super().__init__(driver)
        self.answers: dict[str, str] = {}

    async def resolve(self, name: str) -> str | None:
        found = self.answers.get(name) or await self.driver.resolve(name)
        if found:
            self.answers[name] = found
        return found or None


class LeavesInOrder(BrokenDriver):
    """Lets the first of the slots go, whatever state they are in."""

    async def choose_leaving(
        self, cluster_key: str, node_set: str, slots: Sequence[str], count: int
    ) -> Sequence[str]:
        return slots[:count]


class LeavesNodesBehind(BrokenDriver):
    """Says that a cluster is gone while its nodes are still there."""

    async def act(self, name: str, verb: Callable[..., Any], key: str, *args: Any) -> Any:
        outcome = await verb(key, *args)
        if name == "release_cluster" and getattr(outcome, "reason", "") == HAS_NODES:
            return Done()
        return outcome


class NeverSleeps(BrokenDriver):
    """Says that a cluster rests, and lets it run."""

    async def act(self, name: str, verb: Callable[..., Any], key: str, *args: Any) -> Any:
        if name == "ensure_cluster":
            args = (dataclasses.replace(args[0], rest=RestMode.AWAKE),)
        return await verb(key, *args)


class BacksUpAnew(BrokenDriver):
    """Asked for a backup again, it takes another one."""

    async def act(self, name: str, verb: Callable[..., Any], key: str, *args: Any) -> Any:
        if name == "ensure_backup":
            await self.driver.release_backup(key)
        return await verb(key, *args)


class RestoresAgain(BrokenDriver):
    """Asked for a restored cluster again, it restores it again."""

    async def act(self, name: str, verb: Callable[..., Any], key: str, *args: Any) -> Any:
        if name == "ensure_cluster" and args[0].restore is not None:
            again = dataclasses.replace(args[0].restore, request=str(self.calls))
            args = (dataclasses.replace(args[0], restore=again),)
        return await verb(key, *args)


class ListsBackups(BrokenDriver):
    """Names backups among what could be swept."""

    async def list_owned(self, prefix: str = "") -> Any:
        backup = OwnedObject(key="backup-1/backup", kind="backup", name="one")
        return [*await self.driver.list_owned(prefix), backup]


class AlwaysYes(BrokenDriver):
    """Answers every question with yes."""

    async def run_check(self, name: str, subject: Any) -> Any:
        return Done()


SUITES = {
    "inventory": (
        (ForgetsKeys, test_inventory.holding_again_is_holding_once),
        (MakesAgain, test_inventory.holding_again_is_holding_once),
        (
            TakesFromOthers,
            test_inventory.a_host_held_under_another_key_is_refused_and_stays_held,
        ),
        (TakesFromOthers, test_inventory.of_many_who_ask_at_once_one_gets_the_host),
        (KeepsEverything, test_inventory.a_held_host_is_not_free_until_it_is_released),
        (MindsNothing, test_inventory.releasing_nothing_is_done),
        (BelievesEverything, test_inventory.done_means_it_is_so),
        (HidesOutages, test_inventory.a_service_that_does_not_answer_is_unavailable),
        (ListsLoosely, test_inventory.owned_things_are_listed_by_prefix),
    ),
    "l2": (
        (ForgetsKeys, test_l2.a_network_made_again_is_one_network),
        (MakesAgain, test_l2.a_network_made_again_is_one_network),
        (TakesFromOthers, test_l2.a_vlan_in_use_under_another_key_is_refused),
        (KeepsEverything, test_l2.a_network_with_ports_stays_until_they_are_gone),
        (MindsNothing, test_l2.releasing_nothing_is_done),
        (BelievesEverything, test_l2.done_means_it_is_so),
        (HidesOutages, test_l2.a_port_cannot_be_bound_to_no_network),
        (HidesOutages, test_l2.a_service_that_does_not_answer_is_unavailable),
    ),
    "l3": (
        (ForgetsKeys, test_l3.a_network_made_again_is_one_network),
        (MakesAgain, test_l3.networks_tied_again_are_tied_once),
        (TakesFromOthers, test_l3.a_subnet_in_use_under_another_key_is_refused),
        (TakesFromOthers, test_l3.an_address_in_use_under_another_key_is_refused),
        (KeepsEverything, test_l3.an_address_routed_again_is_routed_once),
        (MindsNothing, test_l3.releasing_nothing_is_done),
        (BelievesEverything, test_l3.done_means_it_is_so),
        (HidesOutages, test_l3.nothing_can_be_tied_to_a_network_that_is_missing),
    ),
    "dns": (
        (ForgetsKeys, test_dns.a_record_made_again_is_one_record),
        (MakesAgain, test_dns.a_record_made_again_is_one_record),
        (TakesFromOthers, test_dns.a_record_of_another_key_is_refused),
        (TakesFromOthers, test_dns.of_many_who_ask_at_once_one_gets_the_name),
        (MindsNothing, test_dns.releasing_nothing_is_done),
        (BelievesEverything, test_dns.done_means_it_is_so),
        (HidesOutages, test_dns.a_service_that_does_not_answer_is_unavailable),
        (ListsLoosely, test_dns.owned_things_are_listed_by_prefix),
        (RemembersNames, test_dns.the_zone_answers_what_records_say),
        (KeepsEverything, test_dns.the_zone_answers_what_records_say),
    ),
    "platform": (
        (ForgetsKeys, test_platform.a_cluster_made_again_is_one_cluster),
        (MakesAgain, test_platform.a_cluster_made_again_is_one_cluster),
        (TakesFromOthers, test_platform.a_node_of_another_key_is_left_alone),
        (KeepsEverything, test_platform.a_released_cluster_is_gone_with_all_it_holds),
        (KeepsEverything, test_platform.no_node_outlives_its_cluster),
        (LeavesNodesBehind, test_platform.no_node_outlives_its_cluster),
        (MindsNothing, test_platform.releasing_nothing_is_done),
        (BelievesEverything, test_platform.done_means_it_is_so),
        (HidesOutages, test_platform.a_node_cannot_join_no_cluster),
        (NeverSleeps, test_platform.a_cluster_rests_and_wakes_up_as_it_was),
        (NeverSleeps, test_platform.a_frozen_cluster_can_be_stopped),
        (KeepsEverything, test_platform.a_resting_cluster_can_be_taken_back),
        (KeepsEverything, test_platform.a_released_backup_is_gone),
        (MindsNothing, test_platform.a_released_backup_is_gone),
        (BacksUpAnew, test_platform.a_backup_outlives_its_cluster_and_becomes_another),
        (RestoresAgain, test_platform.a_restore_happens_once_per_request),
        (ListsBackups, test_platform.backups_are_nobodys_leftovers),
        (HidesOutages, test_platform.of_no_cluster_there_is_no_backup),
        (
            LeavesInOrder,
            test_platform.who_leaves_is_first_who_never_joined_then_not_ready_then_youngest,
        ),
    ),
    "checks": (
        (AlwaysYes, test_checks.a_cluster_that_is_not_there_is_waited_for),
        (AlwaysYes, test_checks.a_missing_node_is_found),
        (AlwaysYes, test_checks.a_lost_node_is_found),
        (AlwaysYes, test_checks.a_wrong_version_is_found),
        (AlwaysYes, test_checks.a_missing_name_is_found),
        (AlwaysYes, test_checks.a_name_that_points_elsewhere_is_found),
        (AlwaysYes, test_checks.what_cannot_be_asked_is_unavailable),
    ),
}
PLANTED = [
    pytest.param(port, broken, rule, id=f"{port}-{broken.__name__}-{rule.__name__}")
    for port, faults in SUITES.items()
    for broken, rule in faults
]


@pytest.mark.parametrize("port, broken, rule", PLANTED)
async def test_a_planted_fault_is_found(port: str, broken: type[BrokenDriver], rule: Rule) -> None:
    provider = PROVIDERS[port]["sim"]["sim-in-process"]
    async with provider() as new_harness, new_harness() as harness:
        faulty = dataclasses.replace(harness, **{port: broken(getattr(harness, port))})

        with pytest.raises((AssertionError, BoatyardError)):
            await rule(faulty)
