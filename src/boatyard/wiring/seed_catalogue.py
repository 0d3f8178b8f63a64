"""The first catalogue of an empty data directory: host types, versions, templates, hubs, tenants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

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
    HostType,
    HostTypeReference,
    Hub,
    HubSpec,
    Metadata,
    NetworkInterface,
    Tenant,
    TenantSpec,
    TenantState,
    TenantStatus,
)
from boatyard.twin.layout import Layout

DRIVER_PORTS = ("inventory", "l2", "l3", "dns", "platform", "checks")


async def fill_catalogue(ledger: Ledger, layout: Layout, *, now: datetime) -> bool:
    """Writes the first catalogue; False when it was there before. It is one write: all of it or nothing."""
    changes = [*_catalogue_changes(now), *_hub_changes(layout, now), *_tenant_changes(now)]
    try:
        await ledger.commit(changes, now=now)
    except Exists:
        return False
    return True


def _make_metadata(name: str, now: datetime, tenant: str = SHARED) -> Metadata:
    return Metadata(
        name=name, tenant=tenant, creator="system", creation_timestamp=now, generation=1
    )


def _catalogue_changes(now: datetime) -> Sequence[Change]:
    note = EventNote("Created", "Part of the first catalogue")
    documents: list[LedgerDocument] = [*_host_types(now), *_versions(now), *_templates(now)]
    return [Insert(document, note=note) for document in documents]


def _host_types(now: datetime) -> Sequence[HostType]:
    rows: Sequence[tuple[str, str, str, Mapping[str, str]]] = (
        ("bm-small", "Small server", "8 cores, 32 GiB", {"cpu": "8", "memory": "32Gi"}),
        ("bm-large", "Large server", "32 cores, 128 GiB", {"cpu": "32", "memory": "128Gi"}),
        (
            "bm-gpu",
            "GPU server",
            "64 cores, 512 GiB, 4 accelerators",
            {"cpu": "64", "memory": "512Gi", "gpu": "4"},
        ),
    )
    return [
        HostType(
            id=name,
            metadata=_make_metadata(name, now),
            title=title,
            description=description,
            resources=resources,
            interfaces=(NetworkInterface(name="eth0", role="fabric", description="25 Gb/s"),),
        )
        for name, title, description, resources in rows
    ]


def _versions(now: datetime) -> Sequence[ClusterVersion]:
    rows = (("4.17.9", False), ("4.18.3", True))
    return [
        ClusterVersion(
            id=f"version-{version}",
            metadata=_make_metadata(version.replace(".", "-"), now),
            spec=ClusterVersionSpec(
                version=version,
                image=f"registry.example/release:{version}",
                enabled=True,
                is_default=default,
                state=ClusterVersionState.ACTIVE,
            ),
        )
        for version, default in rows
    ]


def _templates(now: datetime) -> Sequence[ClusterTemplate]:
    small = HostTypeReference(id="bm-small", name="bm-small")
    large = HostTypeReference(id="bm-large", name="bm-large")
    version = ClusterVersionReference(id="version-4.17.9", name="4-17-9")
    return [
        ClusterTemplate(
            id="ocp_4_17_small",
            metadata=_make_metadata("ocp-4-17-small", now),
            title="OpenShift 4.17, small",
            description="Three small servers; good for trying things out.",
            node_sets={"compute": ClusterTemplateNodeSet(host_type=small, size=3)},
            spec_defaults=ClusterTemplateSpecDefaults(version=version),
            parameters=(
                ClusterTemplateParameterDefinition(
                    name="owner_email",
                    title="Owner",
                    description="Who is told when something is wrong with the cluster.",
                    type="type.googleapis.com/google.protobuf.StringValue",
                ),
            ),
        ),
        ClusterTemplate(
            id="small",
            metadata=_make_metadata("small", now),
            title="Small cluster",
            description="Three small servers with the default version.",
            node_sets={"compute": ClusterTemplateNodeSet(host_type=small, size=3)},
        ),
        ClusterTemplate(
            id="large",
            metadata=_make_metadata("large", now),
            title="Large cluster",
            description="Three large servers for work and one small one for what supports it.",
            node_sets={
                "compute": ClusterTemplateNodeSet(host_type=large, size=3),
                "support": ClusterTemplateNodeSet(host_type=small, size=1),
            },
        ),
    ]


def _hub_changes(layout: Layout, now: datetime) -> Sequence[Change]:
    changes: list[Change] = []
    for name, hub in layout.hubs.items():
        document = Hub(
            id=name,
            metadata=_make_metadata(name, now, tenant=SYSTEM),
            spec=HubSpec(
                namespace="boatyard",
                zone=hub.zone.partition(".")[0],
                drivers=dict.fromkeys(DRIVER_PORTS, "sim"),
                capacity={kind: count for kind, count in hub.hosts.items() if count},
            ),
        )
        changes += [
            Insert(document, note=EventNote("Created", f"Hub {name} is registered")),
            Due("Hub", name, now, hub=name),
        ]
    return changes


def _tenant_changes(now: datetime) -> Sequence[Change]:
    note = EventNote("Created", "Part of the first catalogue")
    return [
        Insert(
            Tenant(
                id=name,
                metadata=_make_metadata(name, now, tenant=name),
                spec=TenantSpec(),
                status=TenantStatus(state=TenantState.SYNCED),
            ),
            note=note,
        )
        for name in (SHARED, SYSTEM, "acme", "globex")
    ]
