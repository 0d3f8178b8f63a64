"""Reads the template metadata of a role from `meta/template.yaml`, or from OSAC's `meta/osac.yaml`. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from boatyard.roles.argument_specs import read_options
from boatyard.roles.form import NO_FORM, Form
from boatyard.roles.phases import HOOKS
from boatyard.roles.yaml_file import YamlDocument, YamlPath

LONGEST_ID = 128
LARGEST_NODE_SET = 10_000
ANY_PLATFORM = "any"  # in `platforms`: any platform that the hub has

_ID = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_VERSION = re.compile(r"[0-9]+(\.[0-9]+){0,2}")
_TEMPLATE_KEYS = {
    *("id", "name", "title", "description", "platform", "platform_settings", "hub_labels"),
    *("node_sets", "default_node_requirements", "allowed_host_types", "allowed_resource_classes"),
    *("versions", "hooks", "network"),
}
# OSAC's name of the only type of template that is offered here.
_CLUSTER_TYPE = "cluster"
_OSAC_TYPES = {"string": "str", "boolean": "bool", "integer": "int", "number": "float"} | {
    "array": "list",
    "object": "dict",
}


@dataclass(frozen=True)
class NodeSet:
    host_type: str
    size: int


@dataclass(frozen=True)
class VersionRange:
    """Supported versions: `at_least` and up, less than `below`; empty means no bound. `default` is in the catalogue."""

    at_least: str = ""
    below: str = ""
    default: str = ""


@dataclass(frozen=True)
class TemplateMetadata:
    """The template metadata of a role, without the form of its argument spec."""

    id: str
    name: str = ""
    title: str = ""
    description: str = ""
    platforms: tuple[str, ...] = ()  # by preference: the first that some hub has; ANY is any
    platform_settings: Mapping[str, str] = field(default_factory=dict)
    hub_labels: Mapping[str, str] = field(default_factory=dict)
    node_sets: Mapping[str, NodeSet] = field(default_factory=dict)
    allowed_host_types: tuple[str, ...] = ()
    versions: VersionRange = field(default_factory=VersionRange)
    hooks: tuple[str, ...] | None = None  # None: those whose task files exist
    pod_cidr: str = ""
    service_cidr: str = ""
    form: Form = NO_FORM  # made from OSAC's list of parameters


def read_template_metadata(document: YamlDocument, role: str) -> TemplateMetadata:
    """Reads `meta/template.yaml`. Id and title default to the name of the role. Mistakes go to the document."""
    reader = _MetadataReader(document)
    settings = reader.mapping(document.value, ())
    for key in settings:
        if key not in _TEMPLATE_KEYS:
            document.add_mistake(
                (key,), "is not a word of templates", f"one of {', '.join(sorted(_TEMPLATE_KEYS))}"
            )
    id_ = reader.text(settings, "id") or role
    if not _ID.fullmatch(id_) or len(id_) > LONGEST_ID:
        document.add_mistake(
            ("id",), f"{id_[:80]!r} is not an id", "use letters, digits, _, - and ."
        )
    sets = settings.get("node_sets", settings.get("default_node_requirements"))
    key = "node_sets" if "node_sets" in settings else "default_node_requirements"
    if sets is None:
        document.add_mistake(
            ("node_sets",), "is missing", "such as compute: {host_type: small, size: 3}"
        )
    host_types_key = (
        "allowed_host_types" if "allowed_host_types" in settings else "allowed_resource_classes"
    )
    network = reader.mapping(settings.get("network"), ("network",))
    return TemplateMetadata(
        id=id_,
        name=reader.name(settings, id_),
        title=reader.text(settings, "title") or id_,
        description=reader.text(settings, "description"),
        platforms=reader.platforms(settings.get("platform")),
        platform_settings=reader.texts(settings, "platform_settings"),
        hub_labels=reader.texts(settings, "hub_labels"),
        node_sets=reader.node_sets(sets, (key,)),
        allowed_host_types=reader.names(settings.get(host_types_key), (host_types_key,)),
        versions=reader.versions(settings.get("versions")),
        hooks=reader.hooks(settings.get("hooks")),
        pod_cidr=reader.text(network, "pod_cidr", ("network",)),
        service_cidr=reader.text(network, "service_cidr", ("network",)),
    )


def read_osac_metadata(document: YamlDocument, role: str) -> TemplateMetadata | None:
    """Reads `meta/osac.yaml`, as roles made for OSAC have it. Unknown keys are ignored: they are for OSAC.

    None when the template is not one for clusters.
    """
    reader = _MetadataReader(document)
    settings = reader.mapping(document.value, ())
    kind = reader.text(settings, "template_type") or _CLUSTER_TYPE
    if kind != _CLUSTER_TYPE:
        document.add_mistake(("template_type",), f"{kind[:80]!r} is not offered here", "cluster")
        return None
    key = next(
        (candidate for candidate in _NODE_REQUEST_KEYS if candidate in settings),
        _NODE_REQUEST_KEYS[0],
    )
    if not settings.get(key):
        document.add_mistake(
            (key,), "is missing", "say how many nodes of which class a cluster has"
        )
    defaults = reader.mapping(settings.get("spec_defaults"), ("spec_defaults",))
    return TemplateMetadata(
        id=role,
        name=reader.name(settings, role),
        title=reader.text(settings, "title") or role,
        description=reader.text(settings, "description"),
        node_sets=reader.node_sets(settings.get(key), (key,)),
        allowed_host_types=reader.names(
            settings.get("allowed_resource_classes"), ("allowed_resource_classes",)
        ),
        versions=VersionRange(default=reader.text(defaults, "version_name", ("spec_defaults",))),
        form=Form(options=reader.parameters(settings.get("parameters"))),
    )


_NODE_REQUEST_KEYS = ("default_node_request", "default_node_requirements")


class _MetadataReader:
    """Reads typed values of one file. A wrong value is added to the mistakes, and the empty value is returned."""

    def __init__(self, document: YamlDocument) -> None:
        self._document = document

    def mapping(self, value: Any, path: YamlPath) -> Mapping[str, Any]:
        if isinstance(value, dict):
            return value
        if value is not None or not path:
            self._document.add_mistake(path, "is not a mapping")
        return {}

    def text(self, mapping: Mapping[str, Any], key: str, path: YamlPath = ()) -> str:
        value = mapping.get(key)
        if value is None or isinstance(value, str):
            return (value or "").strip()
        remedy = "quote it" if isinstance(value, int | float) else ""
        self._document.add_mistake((*path, key), "is not a text", remedy)
        return ""

    def name(self, settings: Mapping[str, Any], id_: str) -> str:
        name = self.text(settings, "name")
        if name and not _LABEL.fullmatch(name):
            self._document.add_mistake(
                ("name",), f"{name[:80]!r} is not a name", "use a-z, 0-9 and -"
            )
        return name or id_.rpartition(".")[2].replace("_", "-").lower()

    def texts(self, settings: Mapping[str, Any], key: str) -> Mapping[str, str]:
        mapping = self.mapping(settings.get(key), (key,))
        return {name: self.text(mapping, name, (key,)) for name in mapping}

    def names(self, value: Any, path: YamlPath) -> tuple[str, ...]:
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(name, str) and name for name in value):
            self._document.add_mistake(path, "is not a list of names")
            return ()
        return tuple(value)

    def node_sets(self, value: Any, path: YamlPath) -> Mapping[str, NodeSet]:
        """Node sets from a mapping by name, or from OSAC's list, where the resource class is the name."""
        node_sets: dict[str, NodeSet] = {}
        if isinstance(value, list):
            for index, entry in enumerate(value):
                entry_path = (*path, index)
                request = self.mapping(entry, entry_path)
                node_set = self._node_set(request, entry_path)
                name = request.get("name") or node_set.host_type
                if name in node_sets:
                    self._document.add_mistake(
                        entry_path, f"the set {str(name)[:80]!r} is there twice"
                    )
                node_sets[str(name)] = node_set
        else:
            for name, entry in self.mapping(value, path).items():
                node_sets[name] = self._node_set(self.mapping(entry, (*path, name)), (*path, name))
        for name in node_sets:
            if name and not _LABEL.fullmatch(name):
                self._document.add_mistake(
                    path, f"{name[:80]!r} is not a name", "use a-z, 0-9 and -"
                )
        return node_sets

    def _node_set(self, request: Mapping[str, Any], path: YamlPath) -> NodeSet:
        host_key = next((key for key in _HOST_KEYS if key in request), _HOST_KEYS[0])
        size_key = next((key for key in _SIZE_KEYS if key in request), _SIZE_KEYS[0])
        host_type = request.get(host_key)
        if not isinstance(host_type, str) or not host_type:
            self._document.add_mistake((*path, host_key), "is missing", "name a host type")
            host_type = ""
        size = request.get(size_key)
        if not isinstance(size, int) or isinstance(size, bool) or not 1 <= size <= LARGEST_NODE_SET:
            self._document.add_mistake(
                (*path, size_key), "is not a size", f"a whole number, 1 to {LARGEST_NODE_SET}"
            )
            size = 1
        return NodeSet(host_type, size)

    def platforms(self, value: Any) -> tuple[str, ...]:
        """The platforms, from one name or from a list in order of preference."""
        names = self.names([value] if isinstance(value, str) and value else value, ("platform",))
        if ANY_PLATFORM in names[:-1]:
            self._document.add_mistake(
                ("platform",), f"what comes after {ANY_PLATFORM} is never looked at"
            )
        return names

    def versions(self, value: Any) -> VersionRange:
        path: YamlPath = ("versions",)
        mapping = self.mapping(value, path)
        for key in mapping:
            if key not in ("from", "below", "default"):
                self._document.add_mistake(
                    (*path, key), "is not known", "one of from, below, default"
                )
        bounds = {key: self.text(mapping, key, path) for key in ("from", "below", "default")}
        for key, bound in bounds.items():
            if bound and not _VERSION.fullmatch(bound):
                self._document.add_mistake((*path, key), "is not a version", 'such as "4.17"')
        return VersionRange(bounds["from"], bounds["below"], bounds["default"])

    def hooks(self, value: Any) -> tuple[str, ...] | None:
        if value is None:
            return None
        names = self.names(value, ("hooks",))
        for index, name in enumerate(names):
            if name not in HOOKS:
                self._document.add_mistake(
                    ("hooks", index), f"{name[:80]!r} is not a hook", f"one of {', '.join(HOOKS)}"
                )
        return names

    def parameters(self, value: Any) -> Mapping[str, Any]:
        """Options made from OSAC's list of parameters."""
        path: YamlPath = ("parameters",)
        if value is None:
            return {}
        if not isinstance(value, list):
            self._document.add_mistake(path, "is not a list of parameters")
            return {}
        options: dict[str, Any] = {}
        for index, parameter in enumerate(value):
            parameter_path = (*path, index)
            entry = dict(self.mapping(parameter, parameter_path))
            name = entry.pop("name", None)
            if not isinstance(name, str) or not name or name in options:
                self._document.add_mistake((*parameter_path, "name"), "is missing, or there twice")
                continue
            entry.pop("validation", None)  # checked neither by OSAC nor by us
            kind = entry.get("type")
            if isinstance(kind, str):
                entry["type"] = _OSAC_TYPES.get(kind, kind)
            options[name] = entry
        return read_options(self._document, options, path, top=True)


_HOST_KEYS = ("host_type", "resourceClass", "resource_class", "host_class")
_SIZE_KEYS = ("size", "numberOfNodes", "number_of_nodes")
