"""The columns of each kind. Pure: a struct and the time in, cells out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum
from typing import Any

from boatyard.cli.words import age, spell_size
from boatyard.model.generated.boatyard import Backup, Leftover, Order, StepState
from boatyard.model.generated.osac import (
    Cluster,
    ClusterTemplate,
    ClusterVersion,
    HostType,
    Hub,
    Project,
    Tenant,
)

Cell = Callable[[Any, datetime], str]


@dataclass(frozen=True)
class Column:
    """One column; `wide` ones appear with -o wide only.

    `least` is the width it has from the start in a table that grows while one watches.
    """

    title: str
    cell: Cell
    wide: bool = False
    least: int = 0


def table(kind: str, *, wide: bool) -> tuple[Column, ...]:
    """The columns of a kind, by its name."""
    return tuple(column for column in _TABLES[kind] if wide or not column.wide)


def word(value: IntEnum) -> str:
    return "-" if value == 0 else value.name


def _name(document: Any, now: datetime) -> str:
    return str(document.metadata.name or document.id)


def _id(document: Any, now: datetime) -> str:
    return str(document.id)


def _age(document: Any, now: datetime) -> str:
    return age(document.metadata.creation_timestamp, now)


def _tenant(document: Any, now: datetime) -> str:
    return str(document.metadata.tenant)


def _project(document: Any, now: datetime) -> str:
    return str(document.metadata.project)


def _labels(document: Any, now: datetime) -> str:
    return pairs(document.metadata.labels)


def pairs(labels: Mapping[str, Any]) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))


def reference(value: Any) -> str:
    return str(value.name or value.id)


def cluster_state(cluster: Cluster) -> str:
    deleting = cluster.metadata.deletion_timestamp is not None
    return "DELETING" if deleting else word(cluster.status.state)


def backup_state(backup: Backup) -> str:
    deleting = backup.metadata.deletion_timestamp is not None
    return "DELETING" if deleting else word(backup.status.state)


def nodes(cluster: Cluster) -> str:
    """Ready and wanted, over all node sets: 3/3."""
    wanted = sum(one.size for one in cluster.spec.node_sets.values())
    return f"{sum(cluster.status.ready_nodes.values())}/{wanted}"


def _reason(cluster: Cluster, now: datetime) -> str:
    """What is being waited for: the newest thing that is not as it should be."""
    if cluster_state(cluster) == "READY":
        return ""
    told = [one for one in cluster.status.conditions if one.message]
    latest = max(told, key=lambda one: _when(one.last_transition_time, now), default=None)
    return (latest.message or "") if latest else ""


def _when(moment: datetime | None, now: datetime) -> float:
    return (moment - now).total_seconds() if moment else float("-inf")


def _order_step(order: Order, now: datetime) -> str:
    busy = [
        step.name
        for step in order.status.steps
        if step.state not in (StepState.DONE, StepState.QUEUED, StepState.RELEASED)
    ]
    return ",".join(busy)


def _sets(template: ClusterTemplate, now: datetime) -> str:
    return ",".join(
        f"{name}={one.size}x{reference(one.host_type)}"
        for name, one in sorted(template.node_sets.items())
    )


def _parameters(template: ClusterTemplate, now: datetime) -> str:
    return ",".join(one.name + ("*" if one.required else "") for one in template.parameters)


def _version_state(version: ClusterVersion, now: datetime) -> str:
    return word(version.spec.state) if version.spec.enabled is not False else "DISABLED"


def hub_load(hub: Hub, now: datetime) -> str:
    """In use and there, by host type. What an operator has set comes before what was found."""
    found, asked = dict(hub.status.capacity), dict(hub.spec.capacity)
    clusters = asked.pop("clusters", found.pop("clusters", None))
    found.pop("clusters", None)
    there = dict(sorted((asked or found).items()))
    if clusters is not None:
        there["clusters"] = clusters
    used = hub.status.used
    return ",".join(f"{name}:{used.get(name, 0)}/{most}" for name, most in there.items())


_NAME = Column("NAME", _name)
_ID = Column("ID", _id, wide=True)
_AGE = Column("AGE", _age)
_TENANT = Column("TENANT", _tenant, wide=True)
_PROJECT = Column("PROJECT", _project, wide=True)
_LABELS = Column("LABELS", _labels, wide=True)


def _cluster_columns() -> tuple[Column, ...]:
    def state(one: Cluster, now: datetime) -> str:
        return cluster_state(one)

    def ready(one: Cluster, now: datetime) -> str:
        return nodes(one)

    def template(one: Cluster, now: datetime) -> str:
        return reference(one.spec.template)

    def version(one: Cluster, now: datetime) -> str:
        return reference(one.spec.version)

    def api(one: Cluster, now: datetime) -> str:
        return one.status.api_url

    return (
        _NAME,
        Column("STATE", state, least=len("PROGRESSING")),
        Column("NODES", ready),
        Column("TEMPLATE", template),
        Column("VERSION", version, wide=True),
        _TENANT,
        _PROJECT,
        Column("ZONE", lambda one, now: one.spec.zone, wide=True),
        Column("API", api, wide=True),
        _ID,
        _LABELS,
        _AGE,
        Column("WAITING FOR", _reason),
    )


def _tenant_domains(one: Tenant, now: datetime) -> str:
    return ",".join(one.spec.domains)


def _project_state(one: Project, now: datetime) -> str:
    return word(one.status.state)


def _host_resources(one: HostType, now: datetime) -> str:
    return pairs(one.resources)


def _leftover_items(one: Leftover, now: datetime) -> str:
    return str(len(one.status.items))


_TABLES: Mapping[str, tuple[Column, ...]] = {
    "cluster": _cluster_columns(),
    "clustertemplate": (
        _NAME,
        Column("TITLE", lambda one, now: one.title),
        Column("NODE SETS", _sets),
        Column("PARAMETERS", _parameters),
        _TENANT,
        _ID,
        Column("DESCRIPTION", lambda one, now: one.description, wide=True),
    ),
    "clusterversion": (
        _NAME,
        Column("VERSION", lambda one, now: one.spec.version),
        Column("STATE", _version_state),
        Column("DEFAULT", lambda one, now: "yes" if one.spec.is_default else ""),
        _ID,
    ),
    "hosttype": (
        _NAME,
        Column("TITLE", lambda one, now: one.title),
        Column("RESOURCES", _host_resources),
        _TENANT,
        _ID,
    ),
    "tenant": (_NAME, Column("DOMAINS", _tenant_domains), _ID, _AGE),
    "project": (
        _NAME,
        Column("TENANT", _tenant),
        Column("STATE", _project_state),
        Column("TITLE", lambda one, now: one.spec.title),
        _ID,
        _AGE,
    ),
    "backup": (
        _NAME,
        Column("STATE", lambda one, now: backup_state(one)),
        Column("CLUSTER", lambda one, now: one.status.cluster_name),
        Column("VERSION", lambda one, now: one.status.version),
        Column("SIZE", lambda one, now: spell_size(one.status.bytes) if one.status.bytes else ""),
        Column("TAKEN", lambda one, now: age(one.status.taken_at, now)),
        _TENANT,
        _PROJECT,
        Column("HUB", lambda one, now: one.status.hub, wide=True),
        Column("PLACE", lambda one, now: one.status.place, wide=True),
        _ID,
        Column("MESSAGE", lambda one, now: one.status.message),
    ),
    "hub": (
        _NAME,
        Column("STATE", lambda one, now: word(one.status.state)),
        Column("ZONE", lambda one, now: one.spec.zone),
        Column("VERSION", lambda one, now: one.status.version),
        Column("IN USE", hub_load),
        Column("CORDONED", lambda one, now: "yes" if one.spec.cordoned else ""),
        Column("DRIVERS", lambda one, now: pairs(one.spec.drivers), wide=True),
        Column("SEEN", lambda one, now: age(one.status.last_seen, now), wide=True),
        _ID,
        Column("MESSAGE", lambda one, now: one.status.message),
    ),
    "order": (
        Column("CLUSTER", lambda one, now: one.spec.cluster_name or one.metadata.name),
        Column("PHASE", lambda one, now: word(one.status.phase)),
        Column("AT", _order_step),
        Column("HUB", lambda one, now: one.spec.hub),
        Column("TEMPLATE", lambda one, now: one.spec.template, wide=True),
        Column("TENANT", _tenant),
        _ID,
        _AGE,
    ),
    "leftover": (
        Column("CLUSTER", lambda one, now: one.spec.cluster_name),
        Column("HUB", lambda one, now: one.spec.hub),
        Column("ITEMS", _leftover_items),
        Column("TRIES", lambda one, now: str(one.status.tries)),
        Column("TENANT", _tenant, wide=True),
        _ID,
        _AGE,
        Column("MESSAGE", lambda one, now: one.status.message),
    ),
}
