"""The columns of each kind. Pure: a struct and the time in, cells out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum
from typing import Any

from boatyard.cli.text_format import format_age, format_size
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

CellFormatter = Callable[[Any, datetime], str]


@dataclass(frozen=True)
class Column:
    """One column; `wide` ones appear with -o wide only.

    `least` is its minimum width in a table that grows while it is watched.
    """

    title: str
    cell: CellFormatter
    wide: bool = False
    min_width: int = 0


def list_columns(kind: str, *, wide: bool) -> tuple[Column, ...]:
    """The columns of a kind, by its name."""
    return tuple(column for column in _TABLES[kind] if wide or not column.wide)


def format_enum(value: IntEnum) -> str:
    return "-" if value == 0 else value.name


def _name(document: Any, now: datetime) -> str:
    return str(document.metadata.name or document.id)


def _id(document: Any, now: datetime) -> str:
    return str(document.id)


def _age(document: Any, now: datetime) -> str:
    return format_age(document.metadata.creation_timestamp, now)


def _tenant(document: Any, now: datetime) -> str:
    return str(document.metadata.tenant)


def _project(document: Any, now: datetime) -> str:
    return str(document.metadata.project)


def _labels(document: Any, now: datetime) -> str:
    return format_pairs(document.metadata.labels)


def format_pairs(labels: Mapping[str, Any]) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))


def format_reference(value: Any) -> str:
    return str(value.name or value.id)


def cluster_state(cluster: Cluster) -> str:
    deleting = cluster.metadata.deletion_timestamp is not None
    return "DELETING" if deleting else format_enum(cluster.status.state)


def backup_state(backup: Backup) -> str:
    deleting = backup.metadata.deletion_timestamp is not None
    return "DELETING" if deleting else format_enum(backup.status.state)


def format_ready_nodes(cluster: Cluster) -> str:
    """Ready and desired nodes of all node sets: 3/3."""
    desired = sum(node_set.size for node_set in cluster.spec.node_sets.values())
    return f"{sum(cluster.status.ready_nodes.values())}/{desired}"


def _reason(cluster: Cluster, now: datetime) -> str:
    """The message of the condition that changed last, unless the cluster is ready."""
    if cluster_state(cluster) == "READY":
        return ""
    conditions = [condition for condition in cluster.status.conditions if condition.message]
    latest = max(
        conditions,
        key=lambda condition: _relative_seconds(condition.last_transition_time, now),
        default=None,
    )
    return (latest.message or "") if latest else ""


def _relative_seconds(moment: datetime | None, now: datetime) -> float:
    return (moment - now).total_seconds() if moment else float("-inf")


def _order_step(order: Order, now: datetime) -> str:
    busy = [
        step.name
        for step in order.status.steps
        if step.state not in (StepState.DONE, StepState.QUEUED, StepState.RELEASED)
    ]
    return ",".join(busy)


def _node_sets(template: ClusterTemplate, now: datetime) -> str:
    return ",".join(
        f"{name}={node_set.size}x{format_reference(node_set.host_type)}"
        for name, node_set in sorted(template.node_sets.items())
    )


def _parameters(template: ClusterTemplate, now: datetime) -> str:
    return ",".join(
        parameter.name + ("*" if parameter.required else "") for parameter in template.parameters
    )


def _version_state(version: ClusterVersion, now: datetime) -> str:
    return format_enum(version.spec.state) if version.spec.enabled is not False else "DISABLED"


def format_hub_load(hub: Hub, now: datetime) -> str:
    """Used and total amounts by host type. The capacity in the spec comes before the measured one."""
    measured, configured = dict(hub.status.capacity), dict(hub.spec.capacity)
    clusters = configured.pop("clusters", measured.pop("clusters", None))
    measured.pop("clusters", None)
    capacity = dict(sorted((configured or measured).items()))
    if clusters is not None:
        capacity["clusters"] = clusters
    used = hub.status.used
    return ",".join(f"{name}:{used.get(name, 0)}/{total}" for name, total in capacity.items())


_NAME = Column("NAME", _name)
_ID = Column("ID", _id, wide=True)
_AGE = Column("AGE", _age)
_TENANT = Column("TENANT", _tenant, wide=True)
_PROJECT = Column("PROJECT", _project, wide=True)
_LABELS = Column("LABELS", _labels, wide=True)


def _cluster_columns() -> tuple[Column, ...]:
    def state(cluster: Cluster, now: datetime) -> str:
        return cluster_state(cluster)

    def ready(cluster: Cluster, now: datetime) -> str:
        return format_ready_nodes(cluster)

    def template(cluster: Cluster, now: datetime) -> str:
        return format_reference(cluster.spec.template)

    def version(cluster: Cluster, now: datetime) -> str:
        return format_reference(cluster.spec.version)

    def api(cluster: Cluster, now: datetime) -> str:
        return cluster.status.api_url

    return (
        _NAME,
        Column("STATE", state, min_width=len("PROGRESSING")),
        Column("NODES", ready),
        Column("TEMPLATE", template),
        Column("VERSION", version, wide=True),
        _TENANT,
        _PROJECT,
        Column("ZONE", lambda cluster, now: cluster.spec.zone, wide=True),
        Column("API", api, wide=True),
        _ID,
        _LABELS,
        _AGE,
        Column("WAITING FOR", _reason),
    )


def _tenant_domains(tenant: Tenant, now: datetime) -> str:
    return ",".join(tenant.spec.domains)


def _project_state(project: Project, now: datetime) -> str:
    return format_enum(project.status.state)


def _host_resources(host_type: HostType, now: datetime) -> str:
    return format_pairs(host_type.resources)


def _leftover_items(leftover: Leftover, now: datetime) -> str:
    return str(len(leftover.status.items))


_TABLES: Mapping[str, tuple[Column, ...]] = {
    "cluster": _cluster_columns(),
    "clustertemplate": (
        _NAME,
        Column("TITLE", lambda document, now: document.title),
        Column("NODE SETS", _node_sets),
        Column("PARAMETERS", _parameters),
        _TENANT,
        _ID,
        Column("DESCRIPTION", lambda document, now: document.description, wide=True),
    ),
    "clusterversion": (
        _NAME,
        Column("VERSION", lambda document, now: document.spec.version),
        Column("STATE", _version_state),
        Column("DEFAULT", lambda document, now: "yes" if document.spec.is_default else ""),
        _ID,
    ),
    "hosttype": (
        _NAME,
        Column("TITLE", lambda document, now: document.title),
        Column("RESOURCES", _host_resources),
        _TENANT,
        _ID,
    ),
    "tenant": (_NAME, Column("DOMAINS", _tenant_domains), _ID, _AGE),
    "project": (
        _NAME,
        Column("TENANT", _tenant),
        Column("STATE", _project_state),
        Column("TITLE", lambda document, now: document.spec.title),
        _ID,
        _AGE,
    ),
    "backup": (
        _NAME,
        Column("STATE", lambda document, now: backup_state(document)),
        Column("CLUSTER", lambda document, now: document.status.cluster_name),
        Column("VERSION", lambda document, now: document.status.version),
        Column(
            "SIZE",
            lambda document, now: (
                format_size(document.status.bytes) if document.status.bytes else ""
            ),
        ),
        Column("TAKEN", lambda document, now: format_age(document.status.taken_at, now)),
        _TENANT,
        _PROJECT,
        Column("HUB", lambda document, now: document.status.hub, wide=True),
        Column("PLACE", lambda document, now: document.status.place, wide=True),
        _ID,
        Column("MESSAGE", lambda document, now: document.status.message),
    ),
    "hub": (
        _NAME,
        Column("STATE", lambda document, now: format_enum(document.status.state)),
        Column("ZONE", lambda document, now: document.spec.zone),
        Column("VERSION", lambda document, now: document.status.version),
        Column("IN USE", format_hub_load),
        Column("CORDONED", lambda document, now: "yes" if document.spec.cordoned else ""),
        Column("DRIVERS", lambda document, now: format_pairs(document.spec.drivers), wide=True),
        Column("SEEN", lambda document, now: format_age(document.status.last_seen, now), wide=True),
        _ID,
        Column("MESSAGE", lambda document, now: document.status.message),
    ),
    "order": (
        Column(
            "CLUSTER", lambda document, now: document.spec.cluster_name or document.metadata.name
        ),
        Column("PHASE", lambda document, now: format_enum(document.status.phase)),
        Column("AT", _order_step),
        Column("HUB", lambda document, now: document.spec.hub),
        Column("TEMPLATE", lambda document, now: document.spec.template, wide=True),
        Column("TENANT", _tenant),
        _ID,
        _AGE,
    ),
    "leftover": (
        Column("CLUSTER", lambda document, now: document.spec.cluster_name),
        Column("HUB", lambda document, now: document.spec.hub),
        Column("ITEMS", _leftover_items),
        Column("TRIES", lambda document, now: str(document.status.tries)),
        Column("TENANT", _tenant, wide=True),
        _ID,
        _AGE,
        Column("MESSAGE", lambda document, now: document.status.message),
    ),
}
