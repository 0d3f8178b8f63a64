"""Every driver has a provider, and one driver can be tested alone: no harness names a port beside its own."""

from __future__ import annotations

import subprocess
import sys
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from boatyard.automation.port import Automation
from boatyard.checks.port import Checks
from boatyard.infra.dns.port import Dns
from boatyard.infra.inventory.port import Inventory
from boatyard.infra.l2.port import L2
from boatyard.infra.l3.port import L3
from boatyard.model.errors import BoatyardError
from boatyard.model.outcome import Done, Outcome
from boatyard.orderbook.port import OrderBook
from boatyard.platforms.port import Platform
from tests.contracts import harness, test_automation, test_dns
from tests.contracts.memory_dns import MemoryDns, memory_dns_harness
from tests.contracts.order_books import OrderBookHarness
from tests.contracts.providers import DRIVERS, PROVED_ELSEWHERE, PROVIDERS
from tests.contracts.rules import rules_of

ROOT = Path(__file__).parents[2]
HARNESSES: Mapping[str, tuple[type, type]] = {
    "inventory": (harness.InventoryHarness, Inventory),
    "l2": (harness.L2Harness, L2),
    "l3": (harness.L3Harness, L3),
    "dns": (harness.DnsHarness, Dns),
    "platform": (harness.PlatformHarness, Platform),
    "checks": (harness.ChecksHarness, Checks),
    "automation": (test_automation.AutomationHarness, Automation),
    "orderbook": (OrderBookHarness, OrderBook),
}
PORT_TYPES = {port_type for _, port_type in HARNESSES.values()}


@pytest.mark.parametrize("port", sorted(DRIVERS))
def test_every_driver_is_proved_here_or_in_the_file_that_is_named(port: str) -> None:
    elsewhere = PROVED_ELSEWHERE.get(port, {})
    assert DRIVERS[port].keys() <= PROVIDERS[port].keys() | elsewhere.keys(), (
        "a new driver brings its provider"
    )
    assert all((ROOT / path).is_file() for path in elsewhere.values())


@pytest.mark.parametrize(
    "port, driver",
    [("platform", "hosted"), ("platform", "local"), ("automation", "eda"), ("automation", "local")],
)
def test_the_suite_itself_is_run_elsewhere(port: str, driver: str) -> None:
    text = (ROOT / PROVED_ELSEWHERE[port][driver]).read_text()
    assert f"from tests.contracts import test_{port}" in text


def ports_named_by(harness_type: type) -> set[type]:
    return set(typing.get_type_hints(harness_type).values()) & PORT_TYPES


@pytest.mark.parametrize("port", sorted(HARNESSES))
def test_a_harness_holds_the_driver_of_its_own_port_alone(port: str) -> None:
    harness_type, port_type = HARNESSES[port]
    assert ports_named_by(harness_type) == {port_type}


def test_a_harness_with_a_second_port_is_found() -> None:
    class TwoPortsHarness(harness.DnsHarness):
        l2: L2

    assert ports_named_by(TwoPortsHarness) == {Dns, L2}


class ForgetfulDns(MemoryDns):
    """Says that it released, and did not."""

    async def release_record(self, key: str) -> Outcome:
        await self.check_ready()
        return Done()


class UnguardedDns(MemoryDns):
    """Gives a name to whoever asks last."""

    async def ensure_record(self, key: str, name: str, address: str) -> Outcome:
        for owner, (known, _) in list(self.records.items()):
            if known == name and owner != key:
                del self.records[owner]
        return await super().ensure_record(key, name, address)


@pytest.mark.parametrize(
    "broken, rules",
    [
        pytest.param(
            ForgetfulDns,
            {
                "the_zone_answers_what_records_say",
                "a_released_name_can_be_had_again",
                "done_means_it_is_so",
            },
            id="releases nothing",
        ),
        pytest.param(
            UnguardedDns,
            {
                "a_record_of_another_key_is_refused",
                "of_many_who_ask_at_once_one_gets_the_name",
            },
            id="takes names from others",
        ),
    ],
)
async def test_a_driver_that_breaks_the_contract_fails_those_rules_and_no_other(
    broken: type[MemoryDns], rules: set[str]
) -> None:
    failed = set()
    for rule in rules_of(vars(test_dns)):
        try:
            await rule(memory_dns_harness(broken()))
        except (AssertionError, BoatyardError):
            failed.add(rule.__name__)
    assert failed == rules


# Runs pytest in a process in which no driver of the product can be imported.
WITHOUT_DRIVERS = """
import sys
import pytest
sys.modules.update(dict.fromkeys({modules!r}))
sys.exit(pytest.main({words!r}))
"""


def run_pytest(*words: str, without: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    words = ("-q", "-p", "no:cacheprovider", *words)
    program = WITHOUT_DRIVERS.format(modules=list(without), words=list(words))
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_driver_of_one_port_runs_through_its_suite_without_any_other_driver() -> None:
    modules = [
        place.partition(":")[0]
        for port, drivers in DRIVERS.items()
        if port != "orderbook"
        for place in drivers.values()
    ]
    alone = run_pytest("tests/contracts/test_dns.py", "--driver", "memory", without=modules)
    assert alone.returncode == 0, alone.stdout
    assert f"{len(rules_of(vars(test_dns)))} passed" in alone.stdout

    sim = run_pytest("tests/contracts/test_dns.py", "--driver", "sim", "-x", without=modules)
    assert sim.returncode == 1, "the modules are truly missing"


def test_a_driver_is_chosen_by_name() -> None:
    answer = run_pytest("tests/contracts/test_dns.py", "--driver", "sim", "--collect-only")
    tests = [line for line in answer.stdout.splitlines() if "::" in line]
    assert len(tests) == 2 * len(rules_of(vars(test_dns))), "in a process, and over a socket"
    assert all("[sim-" in line for line in tests)


def test_an_unknown_driver_is_refused() -> None:
    answer = run_pytest("tests/contracts/test_dns.py", "--driver", "nobody", "--collect-only")
    assert answer.returncode == 4
    assert "nobody" in answer.stderr
