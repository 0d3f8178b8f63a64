"""The kinds of objects that the command line knows, and the service of each."""

from __future__ import annotations

from dataclasses import dataclass

from boatyard.model.errors import Refused


@dataclass(frozen=True)
class ClientKind:
    """One kind: its name and plural as typed, its service, its event field, and its aliases."""

    name: str
    plural: str
    service: str
    event_field: str = ""  # field of Event that carries it; empty when it cannot be watched
    aliases: tuple[str, ...] = ()

    @property
    def package(self) -> str:
        return self.service.rpartition(".")[0]


KINDS: tuple[ClientKind, ...] = (
    ClientKind("cluster", "clusters", "osac.public.v1.Clusters", "cluster", aliases=("cl",)),
    ClientKind(
        "clustertemplate",
        "clustertemplates",
        "osac.public.v1.ClusterTemplates",
        "cluster_template",
        aliases=("template", "templates", "ct"),
    ),
    ClientKind(
        "clusterversion",
        "clusterversions",
        "osac.public.v1.ClusterVersions",
        "cluster_version",
        aliases=("version", "versions", "cv"),
    ),
    ClientKind("hosttype", "hosttypes", "osac.public.v1.HostTypes", "host_type", aliases=("ht",)),
    ClientKind("tenant", "tenants", "osac.public.v1.Tenants", "tenant", aliases=("tn",)),
    ClientKind("project", "projects", "osac.public.v1.Projects", "project", aliases=("pj",)),
    ClientKind("hub", "hubs", "osac.private.v1.Hubs", "hub"),
    ClientKind("backup", "backups", "boatyard.v1.Backups", aliases=("bk",)),
    ClientKind("order", "orders", "boatyard.v1.Orders", aliases=("ord",)),
    ClientKind("leftover", "leftovers", "boatyard.v1.Leftovers", aliases=("lo",)),
)

CLUSTER = KINDS[0]
TEMPLATE = KINDS[1]
VERSION = KINDS[2]
BACKUP = next(kind for kind in KINDS if kind.name == "backup")
HUB = next(kind for kind in KINDS if kind.name == "hub")
# Shown by `boatyard template list` only.
SOURCE = ClientKind("templatesource", "templatesources", "boatyard.v1.TemplateSources")


def find_kind(word: str) -> ClientKind:
    """The kind that was typed: singular, plural or alias, any case, with or without _ and -."""
    typed = word.lower().replace("_", "").replace("-", "")
    for kind in KINDS:
        if typed in (kind.name, kind.plural, *kind.aliases):
            return kind
    plurals = ", ".join(kind.plural for kind in KINDS)
    raise Refused(f"there is no kind {word!r}; there are {plurals}")
