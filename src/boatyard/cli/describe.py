"""The verb `describe`: one cluster in full, with commands to copy."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from datetime import datetime

from boatyard.cli.calling import call
from boatyard.cli.output import columns
from boatyard.cli.tables import cluster_state, pairs, reference, word
from boatyard.cli.words import age, clean, terminal_now
from boatyard.client.client import Client
from boatyard.client.kinds import CLUSTER
from boatyard.model.generated.osac import Cluster


def describe(args: argparse.Namespace) -> int:
    return call(args, _describe)


async def _describe(client: Client, args: argparse.Namespace) -> None:
    found = await client.find_one(CLUSTER, args.name)
    print("\n".join(cluster_lines(found.document, now=terminal_now())))


def cluster_lines(cluster: Cluster, *, now: datetime) -> list[str]:
    """Everything a tenant may know about a cluster."""
    metadata, spec, status = cluster.metadata, cluster.spec, cluster.status
    name = clean(metadata.name or cluster.id)
    network = spec.network
    facts = [
        ("Name", name),
        ("ID", cluster.id),
        ("Tenant", metadata.tenant),
        ("Project", metadata.project),
        ("State", cluster_state(cluster)),
        ("Template", reference(spec.template)),
        ("Version", reference(spec.version)),
        ("Zone", spec.zone),
        ("API", status.api_url),
        ("Console", status.console_url),
        ("Pod CIDR", (network.pod_cidr if network else None) or ""),
        ("Service CIDR", (network.service_cidr if network else None) or ""),
        ("Parameters", pairs({k: v.get("value") for k, v in spec.template_parameters.items()})),
        ("Labels", pairs(metadata.labels)),
        ("Creator", metadata.creator),
        ("Age", age(metadata.creation_timestamp, now)),
    ]
    lines = [f"{label + ':':<14}{clean(text)}" for label, text in facts if text]
    sets = [
        (
            one,
            reference(wanted.host_type),
            str(wanted.size),
            str(status.node_sets[one].size if one in status.node_sets else 0),
            str(status.ready_nodes.get(one, 0)),
        )
        for one, wanted in sorted(spec.node_sets.items())
    ]
    lines += ["", "Node sets:"]
    lines += _indented(columns(("NAME", "HOST TYPE", "WANTED", "THERE", "READY"), sets))
    conditions = [
        (
            word(one.type),
            word(one.status),
            age(one.last_transition_time, now),
            one.reason or "",
            one.message or "",
        )
        for one in status.conditions
    ]
    if conditions:
        lines += ["", "Conditions:"]
        lines += _indented(columns(("TYPE", "STATUS", "SINCE", "REASON", "MESSAGE"), conditions))
    lines += ["", "Next:", *_indented(_next(name, cluster_state(cluster)))]
    return lines


def _next(name: str, state: str) -> list[str]:
    if state == "READY":
        return [f"boatyard kubeconfig {name}", f"boatyard scale cluster {name} SET=SIZE"]
    return [f"boatyard explain cluster {name}", f"boatyard events cluster {name}"]


def _indented(lines: Iterable[str]) -> list[str]:
    return [f"  {line}" for line in lines]
