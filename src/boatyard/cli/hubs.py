"""The verbs about hubs: register, check, prepare, replace credentials, cordon, delete."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path
from typing import TextIO

from boatyard.cli.cluster_flags import parse_pairs, parse_sizes
from boatyard.cli.clusters import print_next_command
from boatyard.cli.exit_codes import DONE, FAILED, Unsuccessful
from boatyard.cli.output import format_columns, format_data, print_object, to_dict
from boatyard.cli.server_call import call_server
from boatyard.cli.tables import format_enum
from boatyard.cli.text_format import clean
from boatyard.client.client import ApiObject, Client, ReconnectBackoff
from boatyard.client.hub_kubeconfig import flatten_kubeconfig
from boatyard.client.kinds import HUB
from boatyard.model.errors import Refused
from boatyard.model.generated.boatyard import HubFinding, HubFindingResult, HubReport
from boatyard.model.generated.osac import Hub, HubSpec, HubState, Metadata

_FIRST_CHECK_SECONDS = 40.0
_RESULTS = {
    HubFindingResult.PASSED: "ok",
    HubFindingResult.WARNED: "warning",
    HubFindingResult.FAILED: "lacking",
}


def create(args: argparse.Namespace) -> int:
    return call_server(args, _create)


async def _create(client: Client, args: argparse.Namespace) -> None:
    hub_object = await client.create_hub(make_hub(args))
    # With -o the answer belongs to stdout alone.
    stream = sys.stderr if args.output else sys.stdout
    name = clean(args.name)
    print(f"Registered hub {name}.", file=stream)
    if not args.no_wait:
        hub_object = await _wait_until_observed(client, hub_object)
    if args.output:
        print_object(hub_object, HUB, args.output)
    if not args.no_wait:
        _print_readiness(hub_object.document, name, stream)


def make_hub(args: argparse.Namespace) -> Hub:
    """The hub that the flags describe. Its id is its name: people read it in explanations."""
    if args.context and not args.kubeconfig:
        raise Refused("--context goes with --kubeconfig")
    return Hub(
        id=args.name,
        metadata=Metadata(name=args.name),
        spec=HubSpec(
            kubeconfig=read_kubeconfig(args) if args.kubeconfig else b"",
            namespace=args.namespace,
            zone=args.zone,
            drivers=parse_pairs(args.driver, flag="--driver"),
            settings=parse_pairs(args.setting, flag="--setting"),
            capacity=parse_sizes(args.capacity, flag="--capacity"),
            labels=parse_pairs(args.label, flag="--label"),
            templates=tuple(args.template),
            cordoned=args.cordoned,
        ),
    )


def read_kubeconfig(args: argparse.Namespace) -> bytes:
    """The kubeconfig to send: one context, with the contents of the files it names."""
    if args.kubeconfig == "-":
        return flatten_kubeconfig(sys.stdin.buffer.read(), args.context, Path())
    path = Path(args.kubeconfig)
    return flatten_kubeconfig(path.read_bytes(), args.context, path.parent)


async def _wait_until_observed(client: Client, hub_object: ApiObject) -> ApiObject:
    """Polls until a worker has observed the hub's current generation, or the timeout is over."""
    backoff = ReconnectBackoff()
    generation = hub_object.document.metadata.generation
    try:
        async with asyncio.timeout(_FIRST_CHECK_SECONDS):
            while hub_object.document.status.observed_generation < generation:
                await backoff.sleep()
                hub_object = await client.get(HUB, hub_object.id)
    except TimeoutError:
        return hub_object
    return hub_object


def _print_readiness(hub: Hub, name: str, stream: TextIO) -> None:
    """Prints that the hub is ready. Unsuccessful, with the problem and its remedy, when it is not."""
    status = hub.status
    if status.observed_generation < hub.metadata.generation:
        raise Unsuccessful(f"nobody has looked at hub {name} yet; see that a worker runs")
    if status.state == HubState.READY:
        version = f", Kubernetes {clean(status.version)}" if status.version else ""
        print(f"Hub {name} is ready{version}.", file=stream)
        return
    remedy = next((condition.remedy for condition in status.conditions if condition.remedy), "")
    print_next_command(f"boatyard hub check {name}", stream)
    raise Unsuccessful(
        f"hub {name} is {format_enum(status.state)}: {status.message}"
        + (f"; {remedy}" if remedy else "")
    )


# --- looking at it and making it ready -----------------------------------------------------------


def hub(args: argparse.Namespace) -> int:
    actions = {"check": _check, "prepare": _prepare, "credentials": _credentials}
    return call_server(args, actions[args.act])


async def _check(client: Client, args: argparse.Namespace) -> int:
    if args.install:
        return await _prepare(client, args)
    message, report = await client.check_hub(args.name)
    if args.output:
        print(format_data(to_dict(message), args.output))
    else:
        print("\n".join(format_report(report)))
    return DONE if report.ready else FAILED


async def _prepare(client: Client, args: argparse.Namespace) -> int:
    actions, message, report = await client.prepare_hub(args.name)
    if args.output:
        print(format_data(to_dict(message), args.output))
        return DONE if report.ready else FAILED
    print("\n".join(clean(action) for action in actions or ("Nothing was missing",)))
    open_findings = [
        finding for finding in report.findings if finding.result != HubFindingResult.PASSED
    ]
    print()
    print("\n".join(format_report(report, open_findings)))
    return DONE if report.ready else FAILED


def format_report(report: HubReport, findings: list[HubFinding] | None = None) -> list[str]:
    """A table of the findings, and a last line on whether the hub takes orders."""
    shown_findings = report.findings if findings is None else findings
    rows = [
        (finding.check, _RESULTS.get(finding.result, "-"), finding.message, finding.remedy)
        for finding in shown_findings
    ]
    lines = format_columns(("CHECK", "RESULT", "FOUND", "REMEDY"), rows) if rows else []
    failure_count = sum(finding.result == HubFindingResult.FAILED for finding in report.findings)
    things = "one thing is" if failure_count == 1 else f"{failure_count} things are"
    name = clean(report.hub)
    verdict = (
        f"Hub {name} takes orders."
        if report.ready
        else f"Hub {name} takes no orders: {things} lacking."
    )
    return [*lines, *([""] if lines else []), verdict]


async def _credentials(client: Client, args: argparse.Namespace) -> None:
    if not args.kubeconfig:
        raise Refused("say which: --kubeconfig FILE")
    hub_object = await client.find_one(HUB, args.name)
    kubeconfig = read_kubeconfig(args)
    changed_object = await client.change_hub(
        hub_object.id, "spec.kubeconfig", {"kubeconfig": kubeconfig}
    )
    name = clean(args.name)
    if changed_object.document.metadata.generation == hub_object.document.metadata.generation:
        print(f"Hub {name} has these credentials already.")
        return
    print(f"Replaced the credentials of hub {name}.")
    _print_readiness(
        (await _wait_until_observed(client, changed_object)).document, name, sys.stdout
    )


# --- whether it takes orders ---------------------------------------------------------------------


def cordon(args: argparse.Namespace) -> int:
    return call_server(args, _cordon)


def uncordon(args: argparse.Namespace) -> int:
    return call_server(args, _uncordon)


async def _cordon(client: Client, args: argparse.Namespace) -> None:
    hub_object = await client.find_one(HUB, args.name)
    await client.change_hub(hub_object.id, "spec.cordoned", {"cordoned": True})
    print(f"Hub {clean(args.name)} takes no new orders; what it has stays.")


async def _uncordon(client: Client, args: argparse.Namespace) -> None:
    hub_object = await client.find_one(HUB, args.name)
    await client.change_hub(hub_object.id, "spec.cordoned", {"cordoned": False})
    print(f"Hub {clean(args.name)} takes orders again.")


async def delete_hub(client: Client, args: argparse.Namespace) -> None:
    hub_object = await client.find_one(HUB, args.name)
    await client.delete_hub(hub_object.id)
    print(f"Hub {clean(args.name)} is no longer registered.")
