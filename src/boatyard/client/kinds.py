"""The kinds of objects that the command line knows, and the service of each."""

from __future__ import annotations

from dataclasses import dataclass

from boatyard.model.errors import Refused


@dataclass(frozen=True)
class Kind:
    """One kind: its name and plural as typed, its service, its event field, and its aliases."""

    name: str
    plural: str
    service: str
    event: str = ""  # field of Event that carries it; empty when it cannot be watched
    also: tuple[str, ...] = ()

    @property
    def package(self) -> str:
        return self.service.rpartition(".")[0]


KINDS: tuple[Kind, ...] = (
    Kind("cluster", "clusters", "osac.public.v1.Clusters", "cluster", also=("cl",)),
    Kind(
        "clustertemplate",
        "clustertemplates",
        "osac.public.v1.ClusterTemplates",
        "cluster_template",
        also=("template", "templates", "ct"),
    ),
    Kind(
        "clusterversion",
        "clusterversions",
        "osac.public.v1.ClusterVersions",
        "cluster_version",
        also=("version", "versions", "cv"),
    ),
    Kind("hosttype", "hosttypes", "osac.public.v1.HostTypes", "host_type", also=("ht",)),
    Kind("tenant", "tenants", "osac.public.v1.Tenants", "tenant", also=("tn",)),
    Kind("project", "projects", "osac.public.v1.Projects", "project", also=("pj",)),
    Kind("hub", "hubs", "osac.private.v1.Hubs", "hub"),
    Kind("backup", "backups", "boatyard.v1.Backups", also=("bk",)),
    Kind("order", "orders", "boatyard.v1.Orders", also=("ord",)),
    Kind("leftover", "leftovers", "boatyard.v1.Leftovers", also=("lo",)),
)

CLUSTER = KINDS[0]
TEMPLATE = KINDS[1]
VERSION = KINDS[2]
BACKUP = next(kind for kind in KINDS if kind.name == "backup")
HUB = next(kind for kind in KINDS if kind.name == "hub")
# Shown by `boatyard template list` only.
SOURCE = Kind("templatesource", "templatesources", "boatyard.v1.TemplateSources")


def find_kind(word: str) -> Kind:
    """The kind that was typed: singular, plural or alias, any case, with or without _ and -."""
    typed = word.lower().replace("_", "").replace("-", "")
    for kind in KINDS:
        if typed in (kind.name, kind.plural, *kind.also):
            return kind
    plurals = ", ".join(kind.plural for kind in KINDS)
    raise Refused(f"there is no kind {word!r}; there are {plurals}")
