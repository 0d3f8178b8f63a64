"""The verb `describe`: one cluster, backup or hub in full, with commands to copy."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from datetime import datetime

from boatyard.cli.output import format_columns
from boatyard.cli.server_call import call_server
from boatyard.cli.tables import (
    backup_state,
    cluster_state,
    format_enum,
    format_hub_load,
    format_pairs,
    format_reference,
)
from boatyard.cli.text_format import clean, format_age, format_size, terminal_now
from boatyard.client.client import Client
from boatyard.client.kinds import BACKUP, CLUSTER, HUB
from boatyard.model.generated.boatyard import Backup
from boatyard.model.generated.osac import Cluster, Hub


def describe(args: argparse.Namespace) -> int:
    return call_server(args, _describe)


async def _describe(client: Client, args: argparse.Namespace) -> None:
    if args.kind == "backup":
        backup_object = await client.find_one(BACKUP, args.name)
        print("\n".join(backup_lines(backup_object.document, now=terminal_now())))
        return
    if args.kind == "hub":
        hub_object = await client.find_one(HUB, args.name)
        print("\n".join(hub_lines(hub_object.document, now=terminal_now())))
        return
    cluster_object = await client.find_one(CLUSTER, args.name)
    print("\n".join(cluster_lines(cluster_object.document, now=terminal_now())))


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
        ("Template", format_reference(spec.template)),
        ("Version", format_reference(spec.version)),
        ("Running", status.version if _runs_other_version(cluster) else ""),
        ("Rest", format_enum(status.rest) if status.rest else ""),
        ("Zone", spec.zone),
        ("API", status.api_url),
        ("Console", status.console_url),
        ("Pod CIDR", (network.pod_cidr if network else None) or ""),
        ("Service CIDR", (network.service_cidr if network else None) or ""),
        (
            "Parameters",
            format_pairs(
                {key: value.get("value") for key, value in spec.template_parameters.items()}
            ),
        ),
        ("Labels", format_pairs(metadata.labels)),
        ("Creator", metadata.creator),
        ("Age", format_age(metadata.creation_timestamp, now)),
    ]
    lines = [f"{label + ':':<14}{clean(text)}" for label, text in facts if text]
    sets = [
        (
            name,
            format_reference(node_set.host_type),
            str(node_set.size),
            str(status.node_sets[name].size if name in status.node_sets else 0),
            str(status.ready_nodes.get(name, 0)),
        )
        for name, node_set in sorted(spec.node_sets.items())
    ]
    lines += ["", "Node sets:"]
    lines += _indent_lines(format_columns(("NAME", "HOST TYPE", "WANTED", "THERE", "READY"), sets))
    conditions = [
        (
            format_enum(condition.type),
            format_enum(condition.status),
            format_age(condition.last_transition_time, now),
            condition.reason or "",
            condition.message or "",
        )
        for condition in status.conditions
    ]
    if conditions:
        lines += ["", "Conditions:"]
        lines += _indent_lines(
            format_columns(("TYPE", "STATUS", "SINCE", "REASON", "MESSAGE"), conditions)
        )
    lines += ["", "Next:", *_indent_lines(_list_next_commands(name, cluster_state(cluster)))]
    return lines


def backup_lines(backup: Backup, *, now: datetime) -> list[str]:
    """Everything the caller may know about a backup; where it is, operators only."""
    metadata, spec, status = backup.metadata, backup.spec, backup.status
    name, cluster = clean(metadata.name or backup.id), clean(status.cluster_name)
    facts = [
        ("Name", name),
        ("ID", backup.id),
        ("Tenant", metadata.tenant),
        ("Project", metadata.project),
        ("State", backup_state(backup)),
        ("Cluster", f"{status.cluster_name} ({spec.cluster})"),
        ("Version", status.version),
        ("Size", format_size(status.bytes) if status.bytes else ""),
        ("SHA-256", status.sha256),
        ("Taken", f"{format_age(status.taken_at, now)} ago" if status.taken_at else ""),
        ("Message", status.message),
        ("Hub", status.hub),
        ("Place", status.place),
        ("Cause", status.cause),
        ("Creator", metadata.creator),
        ("Age", format_age(metadata.creation_timestamp, now)),
    ]
    lines = [f"{label + ':':<14}{clean(text)}" for label, text in facts if text]
    if backup_state(backup) == "READY":
        lines += ["", "Next:"]
        lines += _indent_lines(
            [
                f"boatyard restore cluster {cluster} --backup {name}",
                f"boatyard create cluster NEW --template T --from-backup {name}",
            ]
        )
    return lines


def hub_lines(hub: Hub, *, now: datetime) -> list[str]:
    """Everything an operator may know about a hub; its credentials are nobody's to see."""
    metadata, spec, status = hub.metadata, hub.spec, hub.status
    name = clean(metadata.name or hub.id)
    facts = [
        ("Name", name),
        ("ID", hub.id),
        ("State", format_enum(status.state)),
        ("Cordoned", "yes" if spec.cordoned else ""),
        ("Orders in", "its Kubernetes" if spec.kubeconfig else "the ledger (embedded)"),
        ("Version", status.version),
        ("Namespace", spec.namespace),
        ("Zone", spec.zone),
        ("In use", format_hub_load(hub, now)),
        ("Templates", ",".join(spec.templates)),
        ("Drivers", format_pairs(spec.drivers)),
        ("Settings", format_pairs(spec.settings)),
        ("Hub labels", format_pairs(spec.labels)),
        ("Labels", format_pairs(metadata.labels)),
        ("Creator", metadata.creator),
        ("Age", format_age(metadata.creation_timestamp, now)),
    ]
    lines = [f"{label + ':':<14}{clean(text)}" for label, text in facts if text]
    conditions = [
        (
            format_enum(condition.type),
            format_enum(condition.status) if condition.status else "UNKNOWN",
            format_age(condition.last_transition_time, now),
            condition.reason,
            condition.message,
        )
        for condition in status.conditions
    ]
    if conditions:
        lines += ["", "Conditions:"]
        lines += _indent_lines(
            format_columns(("TYPE", "STATUS", "SINCE", "REASON", "MESSAGE"), conditions)
        )
    remedies = [condition.remedy for condition in status.conditions if condition.remedy]
    lines += ["", "Next:", *_indent_lines([*map(clean, remedies), f"boatyard hub check {name}"])]
    return lines


def _runs_other_version(cluster: Cluster) -> bool:
    """Whether the cluster runs another version than its spec names; the spec has a name such as 4-17-1 for 4.17.1."""
    running, desired = cluster.status.version, format_reference(cluster.spec.version)
    return bool(running) and running.replace(".", "-") not in desired.replace(".", "-")


def _list_next_commands(name: str, state: str) -> list[str]:
    if state == "HIBERNATED":
        return [f"boatyard resume cluster {name}"]
    if state == "READY":
        return [f"boatyard kubeconfig {name}", f"boatyard scale cluster {name} SET=SIZE"]
    return [f"boatyard explain cluster {name}", f"boatyard events cluster {name}"]


def _indent_lines(lines: Iterable[str]) -> list[str]:
    return [f"  {line}" for line in lines]
