"""Gives the trial's data centre what the role needs: host types, versions, hub labels. Used by `environment`."""

from __future__ import annotations

import contextlib

import msgspec

from boatyard.ledger.changes import Change, Insert, Replace
from boatyard.ledger.ledger import Ledger
from boatyard.model.caller import SHARED
from boatyard.model.errors import Conflict
from boatyard.model.generated.osac import (
    ClusterTemplate,
    ClusterVersion,
    ClusterVersionSpec,
    ClusterVersionState,
    HostType,
    Hub,
    Metadata,
)
from boatyard.roles.template_metadata import TemplateMetadata
from boatyard.twin.layout import HubLayout, Layout

_MAX_CLUSTERS = 24  # at once, at most


def make_layout(template: TemplateMetadata, hub: str) -> Layout:
    """One hub with hosts for all clusters that exist at once, each with one node more than by default."""
    hosts = dict.fromkeys(("bm-small", "bm-large", "bm-gpu", *template.allowed_host_types), 20)
    for node_set in template.node_sets.values():
        hosts[node_set.host_type] = (
            hosts.get(node_set.host_type, 0) + (node_set.size + 1) * _MAX_CLUSTERS
        )
    return Layout(
        hubs={
            hub: HubLayout(
                hosts=hosts,
                subnets="10.1.0.0/16",
                floating="198.51.0.0/20",
                zone="zone-1.example",
            )
        }
    )


async def extend_catalogue(ledger: Ledger, template: TemplateMetadata) -> None:
    """Adds the host types and versions that the seeded catalogue lacks for this role."""
    now = ledger.clock.now()

    def called(name: str) -> Metadata:
        return Metadata(
            name=name, tenant=SHARED, creator="system", creation_timestamp=now, generation=1
        )

    changes: list[Change] = []
    existing_types = {
        document.id for document in (await ledger.documents.list(HostType, limit=1000)).items
    }
    required_types = {node_set.host_type for node_set in template.node_sets.values()} | {
        *template.allowed_host_types
    }
    for name in sorted(required_types - existing_types):
        changes.append(Insert(HostType(id=name, metadata=called(name), title=name)))
    existing_versions = {
        document.spec.version
        for document in (await ledger.documents.list(ClusterVersion, limit=1000)).items
    }
    for version in sorted(_required_versions(template) - existing_versions):
        spec = ClusterVersionSpec(
            version=version,
            image=f"registry.example/release:{version}",
            enabled=True,
            state=ClusterVersionState.ACTIVE,
        )
        name = version.replace(".", "-")
        changes.append(
            Insert(ClusterVersion(id=f"version-{version}", metadata=called(name), spec=spec))
        )
    if changes:
        await ledger.commit(changes, now=now)


async def label_hub(ledger: Ledger, template_id: str, hub_id: str) -> None:
    """Gives the hub the labels that the template requires; the twin simulates what they stand for."""
    template = await ledger.documents.get(ClusterTemplate, template_id)
    while template is not None and template.hub_labels:
        hub = await ledger.documents.get(Hub, hub_id)
        if hub is None or template.hub_labels.items() <= hub.spec.labels.items():
            return
        labels = {**hub.spec.labels, **template.hub_labels}
        spec = msgspec.structs.replace(hub.spec, labels=labels)
        with contextlib.suppress(Conflict):  # the hub's reconciler wrote meanwhile: try again
            change = Replace(msgspec.structs.replace(hub, spec=spec))
            await ledger.commit([change], now=ledger.clock.now())


def _required_versions(template: TemplateMetadata) -> set[str]:
    """The default version, and the lowest version of the role's range."""
    versions = {template.versions.default} if template.versions.default else set()
    if template.versions.at_least:
        versions.add(".".join([*template.versions.at_least.split("."), "0", "0"][:3]))
    return versions
