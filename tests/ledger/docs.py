"""Documents for the ledger's tests: clusters small enough to read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from boatyard.model.generated.osac import Cluster, ClusterSpec, ClusterTemplateReference, Metadata

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def cluster(
    id: str, *, name: str = "", tenant: str = "acme", template: str = "", **spec: Any
) -> Cluster:
    metadata = Metadata(tenant=tenant, name=name or id, creation_timestamp=NOW)
    if template:
        spec["template"] = ClusterTemplateReference(id=template)
    return Cluster(id=id, metadata=metadata, spec=ClusterSpec(**spec))


def deleting(doc: Cluster) -> Cluster:
    return with_metadata(doc, deletion_timestamp=NOW)


def with_metadata(doc: Cluster, **fields: Any) -> Cluster:
    return msgspec.structs.replace(doc, metadata=msgspec.structs.replace(doc.metadata, **fields))


def read_at(doc: Cluster, version: int) -> Cluster:
    return with_metadata(doc, version=version)
