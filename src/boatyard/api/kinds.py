"""The table of resource kinds, and how each package of the API shows them. Read by crud and both servers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message

from boatyard.model import wire
from boatyard.model.caller import SHARED, SYSTEM
from boatyard.model.generated import boatyard, convert, osac, projection
from boatyard.model.generated.osac import Resource
from boatyard.resources.backups.rules import BackupRules
from boatyard.resources.cluster_templates.rules import ClusterTemplateRules
from boatyard.resources.cluster_versions.rules import ClusterVersionRules
from boatyard.resources.clusters.rules import ClusterRules
from boatyard.resources.host_types.rules import HostTypeRules
from boatyard.resources.hubs.rules import HubRules
from boatyard.resources.kind_rules import KindRules
from boatyard.resources.projects.rules import ProjectRules
from boatyard.resources.tenants.rules import TenantRules

OSAC_PUBLIC = "osac.public.v1"
OSAC_PRIVATE = "osac.private.v1"
BOATYARD_V1 = "boatyard.v1"

ORDER_FINALIZER = "boatyard.io/order"
BACKUP_FINALIZER = "boatyard.io/backup"

# Where the id of a new document comes from: an operator may choose it, the service always
# generates it, or it is the name.
ID_CHOSEN, ID_GENERATED, ID_FROM_NAME = "chosen", "made", "name"


_NO_RULES: KindRules[Resource] = KindRules()


@dataclass(frozen=True)
class Home:
    """How the metadata of other documents names the document that they belong to."""

    field: str  # of metadata
    by_name: bool = False  # by a name that is unique in the document's tenant; else by id
    remedy: str = ""  # for a document that names one that does not exist


@dataclass(frozen=True)
class Referrer:
    """Where documents of another kind store the id of a document, besides in references."""

    struct: type[Resource]
    path: str  # JSON path


@dataclass(frozen=True)
class ResourceKind:
    """One kind of document: its names, the rules that admit it, and whether it is reconciled."""

    struct: type[Resource]
    service: str  # the name of its service in each package that has it
    rules: KindRules[Any] = _NO_RULES
    written_by_service: bool = False  # and read only in the API
    public: bool = True
    public_read_only: bool = False  # its public service answers other calls with Unimplemented
    reconciled: bool = False
    finalizers: tuple[str, ...] = ()
    tenant: str = SHARED  # the owner when an operator names no tenant
    names_from_ids: bool = False  # without metadata, the name is made from the id
    id_source: str = ID_CHOSEN
    home: Home | None = None
    owned: bool = True  # every document belongs to a tenant, which must exist
    in_catalogue: bool = False  # orders refer to it: few documents, read often, changed seldom
    extra_referrers: tuple[Referrer, ...] = ()
    in_boatyard_package: bool = (
        False  # in our own package, which tenants and operators share; it has no events there
    )

    @property
    def name(self) -> str:
        return self.struct.__name__

    @cached_property
    def english_name(self) -> str:
        """The name as English words: `cluster template`."""
        return re.sub(r"(?<!^)(?=[A-Z])", " ", self.name).lower()

    @cached_property
    def field(self) -> str:
        """The name of its field in an event's payload: `cluster_template`."""
        return self.english_name.replace(" ", "_")

    @property
    def operator_only_fields(self) -> tuple[str, ...]:
        return self.rules.operators_only

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
        referrers = [(other.struct.__name__, other.path) for other in self.extra_referrers]
        if self.home is not None and not self.home.by_name:
            path = f"$.metadata.{self.home.field}"
            referrers += [(other.name, path) for other in KINDS.values() if other.owned]
        for other in KINDS.values():
            referrers += [
                (other.name, f"{_json_path(path, other.descriptor)}.id")
                for path, target in other.references.items()
                if target == self.name and not path.startswith("status.")
            ]
        return tuple(referrers)

    @cached_property
    def package(self) -> str:
        """The package that has all of its fields."""
        return BOATYARD_V1 if self.written_by_service or self.in_boatyard_package else OSAC_PRIVATE

    @cached_property
    def descriptor(self) -> Descriptor:
        return cast(Descriptor, wire.message(f"{self.package}.{self.name}").DESCRIPTOR)


def _json_path(path: str, descriptor: Descriptor) -> str:
    """The path of a field as a JSON path: `*` is every key of a map, or every element of a list."""
    steps = ["$"]
    inside: Descriptor | None = descriptor
    is_map = False
    for name in path.split("."):
        if name == "*":
            steps.append(".*" if is_map else "[*]")
            continue
        assert inside is not None, "only messages have fields"
        inside = inside.fields_by_name[name].message_type
        is_map = inside is not None and inside.GetOptions().map_entry
        if inside is not None and is_map:
            inside = inside.fields_by_name["value"].message_type
        steps.append(f".{name}")
    return "".join(steps)


@dataclass(frozen=True)
class KindView:
    """A kind as one package shows it."""

    kind: ResourceKind
    private: bool
    message: str  # the full name of its message

    @cached_property
    def to_fields(self) -> Callable[[Resource], dict[str, object]]:
        """Converts a document to the fields of its message, from which a response is built.

        A response built from finished messages copies each of them: a page takes twice as long.
        """
        return convert.TO_FIELDS[self.message]

    @cached_property
    def from_message(self) -> Callable[[Message], Resource]:
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


KINDS: Mapping[str, ResourceKind] = {
    kind.name: kind
    for kind in (
        ResourceKind(
            osac.Tenant,
            "Tenants",
            TenantRules(),
            id_source=ID_FROM_NAME,
            home=Home("tenant"),
            owned=False,
            public_read_only=True,  # as in the OSAC service
            in_catalogue=True,
        ),
        ResourceKind(
            osac.Project,
            "Projects",
            ProjectRules(),
            home=Home("project", by_name=True, remedy="create it first"),
            in_catalogue=True,
        ),
        ResourceKind(
            osac.HostType, "HostTypes", HostTypeRules(), names_from_ids=True, in_catalogue=True
        ),
        ResourceKind(
            osac.ClusterVersion,
            "ClusterVersions",
            ClusterVersionRules(),
            id_source=ID_GENERATED,
            in_catalogue=True,
        ),
        ResourceKind(
            osac.ClusterTemplate,
            "ClusterTemplates",
            ClusterTemplateRules(),
            names_from_ids=True,
            in_catalogue=True,
        ),
        ResourceKind(
            osac.Hub,
            "Hubs",
            HubRules(),
            public=False,
            reconciled=True,
            tenant=SYSTEM,
            names_from_ids=True,
            extra_referrers=(
                Referrer(osac.Cluster, "$.status.hub"),
                Referrer(boatyard.Order, "$.spec.hub"),
                Referrer(boatyard.Leftover, "$.spec.hub"),
                Referrer(boatyard.Backup, "$.status.hub"),
            ),
        ),
        ResourceKind(
            osac.Cluster,
            "Clusters",
            ClusterRules(),
            reconciled=True,
            finalizers=(ORDER_FINALIZER,),
        ),
        ResourceKind(
            boatyard.Backup,
            "Backups",
            BackupRules(),
            in_boatyard_package=True,
            reconciled=True,
            finalizers=(BACKUP_FINALIZER,),
            # In use while a cluster is still to be restored from it; afterwards it may go.
            extra_referrers=(
                Referrer(
                    osac.Cluster,
                    "$ ? (!(@.spec.restore.request == @.status.restored)).spec.restore.backup",
                ),
            ),
        ),
        # See orders.py.
        ResourceKind(
            boatyard.Order,
            "Orders",
            written_by_service=True,
            public=False,
            reconciled=True,
            tenant=SYSTEM,
        ),
        ResourceKind(
            boatyard.Leftover,
            "Leftovers",
            written_by_service=True,
            public=False,
            reconciled=True,
            tenant=SYSTEM,
        ),
        # Written when a role is published: see templates.py.
        ResourceKind(
            boatyard.TemplateSource,
            "TemplateSources",
            written_by_service=True,
            public=False,
            tenant=SYSTEM,
        ),
    )
}

# Kinds with every verb of the contract, updates and events included.
WRITABLE_KINDS = tuple(
    kind for kind in KINDS.values() if not kind.written_by_service and not kind.in_boatyard_package
)
CATALOGUE_STRUCTS = {kind.name: kind for kind in KINDS.values() if kind.in_catalogue}
# The kinds that other documents belong to, each with how they name it.
HOMES = tuple((kind, kind.home) for kind in KINDS.values() if kind.home is not None)


def _build_views() -> Mapping[str, KindView]:
    views = {}
    for kind in KINDS.values():
        if kind.package == BOATYARD_V1:
            view = KindView(kind, kind.written_by_service, f"{BOATYARD_V1}.{kind.name}")
            views[f"{BOATYARD_V1}.{kind.service}"] = view
            continue
        views[f"{OSAC_PRIVATE}.{kind.service}"] = KindView(
            kind, True, f"{OSAC_PRIVATE}.{kind.name}"
        )
        if kind.public:
            views[f"{OSAC_PUBLIC}.{kind.service}"] = KindView(
                kind, False, f"{OSAC_PUBLIC}.{kind.name}"
            )
    return views


VIEWS: Mapping[str, KindView] = _build_views()
