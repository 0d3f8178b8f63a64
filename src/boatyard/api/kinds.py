"""The table of resource kinds, and how each package of the API shows them. Read by crud and both servers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import Any, cast

from google.protobuf.descriptor import Descriptor

from boatyard.model import wire
from boatyard.model.caller import SHARED, SYSTEM
from boatyard.model.generated import boatyard, convert, osac, projection
from boatyard.resources.backups import rules as backups
from boatyard.resources.cluster_templates import rules as cluster_templates
from boatyard.resources.cluster_versions import rules as cluster_versions
from boatyard.resources.clusters import rules as clusters
from boatyard.resources.host_types import rules as host_types
from boatyard.resources.hubs import rules as hubs
from boatyard.resources.projects import rules as projects
from boatyard.resources.tenants import rules as tenants

PUBLIC = "osac.public.v1"
PRIVATE = "osac.private.v1"
OURS = "boatyard.v1"

ORDER_FINALIZER = "boatyard.io/order"
BACKUP_FINALIZER = "boatyard.io/backup"

# Where the id of a new document comes from: an operator may choose it, the service always
# generates it, or it is the name.
CHOSEN, MADE, NAME = "chosen", "made", "name"


@dataclass(frozen=True)
class Kind:
    """One kind of document: its names, the rules that admit it, and whether it is reconciled."""

    struct: type[Any]
    service: str  # the name of its service in each package that has it
    rules: ModuleType | None = None
    public: bool = True
    reconciled: bool = False
    finalizers: tuple[str, ...] = ()
    tenant: str = SHARED  # the owner when an operator names no tenant
    names_from_ids: bool = False  # without metadata, the name is made from the id
    ids: str = CHOSEN
    more_referrers: tuple[tuple[str, str], ...] = ()
    ours: bool = (
        False  # in our own package, which tenants and operators share; it has no events there
    )

    @property
    def name(self) -> str:
        return self.struct.__name__

    @cached_property
    def words(self) -> str:
        """The name as English words: `cluster template`."""
        return re.sub(r"(?<!^)(?=[A-Z])", " ", self.name).lower()

    @cached_property
    def field(self) -> str:
        """The name of its field in an event's payload: `cluster_template`."""
        return self.words.replace(" ", "_")

    @property
    def operators_only(self) -> tuple[str, ...]:
        """Fields that tenants can neither read nor filter by, in a package that tenants and operators share."""
        paths: tuple[str, ...] = getattr(self.rules, "OPERATORS_ONLY", ())
        return paths

    @property
    def sensitive(self) -> tuple[str, ...]:
        return projection.SENSITIVE[self.name]

    @property
    def references(self) -> Mapping[str, str]:
        return projection.REFERENCES[self.name]

    @cached_property
    def immutable(self) -> tuple[str, ...]:
        fixed = ("metadata.name", "metadata.tenant", "metadata.project")
        return fixed + projection.IMMUTABLE[self.name]

    @cached_property
    def referrers(self) -> tuple[tuple[str, str], ...]:
        """The kinds and JSON paths at which other documents store ids of this kind."""
        return self.more_referrers + tuple(
            (other, f"$.{path.replace('.*', '.*' if 'node_sets' in path else '[*]')}.id")
            for other, references in projection.REFERENCES.items()
            for path, kind in references.items()
            if kind == self.name and other in KINDS and not path.startswith("status.")
        )


@dataclass(frozen=True)
class View:
    """A kind as one package shows it."""

    kind: Kind
    private: bool
    message: str  # the full name of its message

    @cached_property
    def to_fields(self) -> Callable[[Any], dict[str, Any]]:
        """Converts a document to the fields of its message, from which a response is built.

        A response built from finished messages copies each of them: a page takes twice as long.
        """
        return convert.TO_FIELDS[self.message]

    @cached_property
    def from_message(self) -> Callable[[Any], Any]:
        return convert.FROM_MESSAGE[self.message]

    @cached_property
    def descriptor(self) -> Descriptor:
        return cast(Descriptor, wire.message(self.message).DESCRIPTOR)

    @cached_property
    def server_owned(self) -> tuple[str, ...]:
        """Paths that a caller of this package may read but not write."""
        owned = ["id"] + [
            f"metadata.{name}"
            for name in (
                "creation_timestamp",
                "deletion_timestamp",
                "creator",
                "version",
                "generation",
            )
        ]
        if not self.private and "status" in self.descriptor.fields_by_name:
            owned.append("status")
        return tuple(owned) + projection.OUTPUT_ONLY[self.kind.name]


_EVERYTHING_OWNED = ("Project", "HostType", "ClusterVersion", "ClusterTemplate", "Hub", "Cluster")

KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind(
            osac.Tenant,
            "Tenants",
            tenants,
            ids=NAME,
            more_referrers=tuple(
                (name, "$.metadata.tenant")
                for name in (*_EVERYTHING_OWNED, "Order", "Leftover", "Backup")
            ),
        ),
        Kind(osac.Project, "Projects", projects),
        Kind(osac.HostType, "HostTypes", host_types, names_from_ids=True),
        Kind(osac.ClusterVersion, "ClusterVersions", cluster_versions, ids=MADE),
        Kind(osac.ClusterTemplate, "ClusterTemplates", cluster_templates, names_from_ids=True),
        Kind(
            osac.Hub,
            "Hubs",
            hubs,
            public=False,
            reconciled=True,
            tenant=SYSTEM,
            names_from_ids=True,
            more_referrers=(
                ("Cluster", "$.status.hub"),
                ("Order", "$.spec.hub"),
                ("Leftover", "$.spec.hub"),
                ("Backup", "$.status.hub"),
            ),
        ),
        Kind(
            osac.Cluster,
            "Clusters",
            clusters,
            reconciled=True,
            finalizers=(ORDER_FINALIZER,),
        ),
        Kind(
            boatyard.Backup,
            "Backups",
            backups,
            ours=True,
            reconciled=True,
            finalizers=(BACKUP_FINALIZER,),
            # In use while a cluster is still to be restored from it; afterwards it may go.
            more_referrers=(
                (
                    "Cluster",
                    "$ ? (!(@.spec.restore.request == @.status.restored)).spec.restore.backup",
                ),
            ),
        ),
        # Written by the service alone, read only in the API: see orders.py.
        Kind(boatyard.Order, "Orders", public=False, reconciled=True, tenant=SYSTEM),
        Kind(boatyard.Leftover, "Leftovers", public=False, reconciled=True, tenant=SYSTEM),
        # Written when a role is published: see templates.py.
        Kind(boatyard.TemplateSource, "TemplateSources", public=False, tenant=SYSTEM),
    )
}

# Kinds with every verb of the contract, updates and events included.
WRITABLE = tuple(kind for kind in KINDS.values() if kind.rules is not None and not kind.ours)
# Kinds that orders refer to: few documents, read often, changed seldom.
CATALOGUE = (osac.Tenant, osac.Project, osac.HostType, osac.ClusterVersion, osac.ClusterTemplate)


def _views() -> Mapping[str, View]:
    views = {}
    for kind in KINDS.values():
        if kind.rules is None or kind.ours:
            private = kind.rules is None
            views[f"{OURS}.{kind.service}"] = View(kind, private, f"{OURS}.{kind.name}")
            continue
        views[f"{PRIVATE}.{kind.service}"] = View(kind, True, f"{PRIVATE}.{kind.name}")
        if kind.public:
            views[f"{PUBLIC}.{kind.service}"] = View(kind, False, f"{PUBLIC}.{kind.name}")
    return views


VIEWS: Mapping[str, View] = _views()
