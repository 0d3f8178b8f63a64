"""The catalogue of real clusters on this machine: a hub, versions and templates, once their programs are installed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import msgspec

from boatyard.assets import DEFAULT_VERSION
from boatyard.ledger.changes import Change, Due, EventNote, Insert, LedgerDocument
from boatyard.ledger.ledger import Ledger
from boatyard.model.caller import SHARED, SYSTEM
from boatyard.model.errors import Exists
from boatyard.model.generated.osac import (
    ClusterTemplate,
    ClusterTemplateNodeSet,
    ClusterTemplateParameterDefinition,
    ClusterTemplateSpecDefaults,
    ClusterVersion,
    ClusterVersionReference,
    ClusterVersionSpec,
    ClusterVersionState,
    HostTypeReference,
    Hub,
    HubSpec,
    Metadata,
)
from boatyard.twin.client import TwinClient
from boatyard.twin.layout import HubLayout
from boatyard.wiring.seed_catalogue import DRIVER_PORTS

HUB_ID = "local"
SMALL_TEMPLATE = "kubernetes_small"
HA_TEMPLATE = "kubernetes_ha"
HUB_LABELS = {"platform": "local"}
# An idle cluster takes some 300 MB; the machine needs memory for other things too.
_BYTES_PER_CLUSTER = 400 * 1024**2

_CREATED_NOTE = EventNote("Created", "Can be ordered here")

LAYOUT = HubLayout(
    hosts={"bm-small": 64, "bm-large": 8},
    subnets="10.3.0.0/16",
    floating="192.0.2.0/24",
    zone="local.example",
)


async def add_local_catalogue(ledger: Ledger, versions: Sequence[str], *, twin: str) -> None:
    """Adds what is missing in the catalogue. Removes nothing: existing clusters need it.

    Without versions it adds only the default version of Kubernetes, for simulated clusters.
    """
    if not versions:
        now = ledger.clock.now()
        await _add_if_missing(
            ledger, [Insert(_make_version(DEFAULT_VERSION, now), note=_CREATED_NOTE)], now
        )
        return
    client = TwinClient(Path(twin))
    try:
        await client.call("twin.add_hub", hub=HUB_ID, layout=msgspec.to_builtins(LAYOUT))
    finally:
        await client.close()
    now = ledger.clock.now()
    documents: list[LedgerDocument] = [
        *(_make_version(version, now) for version in versions),
        *_make_templates(versions[-1], now),
    ]
    for document in documents:
        await _add_if_missing(ledger, [Insert(document, note=_CREATED_NOTE)], now)
    await _add_if_missing(ledger, _hub_changes(now), now)


async def _add_if_missing(ledger: Ledger, changes: Sequence[Change], now: datetime) -> None:
    try:
        await ledger.commit(changes, now=now)
    except Exists:
        return


def _make_metadata(name: str, now: datetime, tenant: str = SHARED) -> Metadata:
    return Metadata(
        name=name, tenant=tenant, creator="system", creation_timestamp=now, generation=1
    )


def _make_version(version: str, now: datetime) -> ClusterVersion:
    return ClusterVersion(
        id=f"version-{version}",
        metadata=_make_metadata(version.replace(".", "-"), now),
        spec=ClusterVersionSpec(
            version=version,
            image=f"kubernetes:v{version}",
            enabled=True,
            state=ClusterVersionState.ACTIVE,
        ),
    )


def _make_templates(version: str, now: datetime) -> Sequence[ClusterTemplate]:
    small = HostTypeReference(id="bm-small", name="bm-small")
    newest = ClusterVersionReference(id=f"version-{version}", name=version.replace(".", "-"))
    return [
        ClusterTemplate(
            id=SMALL_TEMPLATE,
            metadata=_make_metadata("kubernetes-small", now),
            title="Kubernetes, small",
            description="A real control plane on this machine, with two simulated nodes (or real ones).",
            node_sets={"compute": ClusterTemplateNodeSet(host_type=small, size=2)},
            spec_defaults=ClusterTemplateSpecDefaults(version=newest),
            parameters=(
                ClusterTemplateParameterDefinition(
                    name="nodes",
                    title="Nodes",
                    description="`simulated` nodes take no room; `real` ones run containers, if an operator allows it.",
                    type="type.googleapis.com/google.protobuf.StringValue",
                    default={
                        "@type": "type.googleapis.com/google.protobuf.StringValue",
                        "value": "simulated",
                    },
                ),
            ),
            hub_labels=HUB_LABELS,
        ),
        ClusterTemplate(
            id=HA_TEMPLATE,
            metadata=_make_metadata("kubernetes-ha", now),
            title="Kubernetes, highly available",
            description="Three etcd members and API servers behind a load balancer, with three simulated nodes.",
            node_sets={"compute": ClusterTemplateNodeSet(host_type=small, size=3)},
            spec_defaults=ClusterTemplateSpecDefaults(version=newest),
            hub_labels=HUB_LABELS,
            platform_settings={"control_planes": "3"},
        ),
    ]


def _hub_changes(now: datetime) -> Sequence[Change]:
    document = Hub(
        id=HUB_ID,
        metadata=_make_metadata(HUB_ID, now, tenant=SYSTEM),
        spec=HubSpec(
            namespace="boatyard",
            zone=HUB_ID,
            labels=HUB_LABELS,
            drivers={**dict.fromkeys(DRIVER_PORTS, "sim"), "platform": "local", "checks": "kube"},
            capacity={**LAYOUT.hosts, "clusters": _cluster_capacity()},
        ),
    )
    return [
        Insert(document, note=EventNote("Created", f"Hub {HUB_ID} is registered")),
        Due("Hub", HUB_ID, now, hub=HUB_ID),
    ]


def _cluster_capacity() -> int:
    """How many clusters fit into the memory of this machine."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(1, int(memory * 0.8) // _BYTES_PER_CLUSTER)
