"""Adds clusters to the text of a user's kubeconfig and removes them. Called by `boatyard kubeconfig`.

The text is edited as YAML nodes, never as values: other entries keep their spelling and order, so that
fields which this version does not know are not lost. Comments are lost, as with kubectl.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields

import yaml

from boatyard.model.errors import Exists, Refused

EXTENSION_NAME = "boatyard.io"  # the name of the extension that marks an entry as ours
_SECTIONS = (("clusters", "cluster"), ("users", "user"), ("contexts", "context"))

# The fields that are copied from a server's kubeconfig. Files and programs in it would be run or read here.
_COPIED_FIELDS: Mapping[str, frozenset[str]] = {
    "cluster": frozenset(
        {
            "server",
            "certificate-authority-data",
            "tls-server-name",
            "insecure-skip-tls-verify",
            "disable-compression",
        }
    ),
    "user": frozenset(
        {"client-certificate-data", "client-key-data", "token", "username", "password"}
    ),
}
_BOOLEAN_FIELDS = frozenset({"insecure-skip-tls-verify", "disable-compression"})


@dataclass(frozen=True)
class EntryOwner:
    """The cluster that an entry is for: its id, and its name with server, tenant and project."""

    cluster: str
    name: str
    server: str
    tenant: str
    project: str = ""
    user: str = ""  # when it was issued for somebody

    def is_successor(self, other: EntryOwner) -> bool:
        """Whether both are the same cluster, or this one may have replaced the other under the same name."""
        place = (other.server, other.tenant, other.project, other.name)
        same_place = (self.server, self.tenant, self.project, self.name) == place
        return self.cluster == other.cluster or same_place


@dataclass(frozen=True)
class RemovalResult:
    """The text without the removed contexts; `broken` are other contexts that used what was removed."""

    text: str
    contexts: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()


def merge_cluster(
    text: str, received: str, *, context: str, owner: EntryOwner, switch: bool = False
) -> str:
    """The text with the cluster, user and context of `received` under the name `context`.

    Entries of the same cluster are replaced. Exists when the name is somebody else's; Refused when
    either text is not a kubeconfig.
    """
    if not context or not context.isprintable():
        raise Refused(f"{context!r} is no name for a context")
    config = _Config(text)
    for (table, _), body in zip(_SECTIONS, _select_entries(received, context), strict=True):
        config.put_entry(table, context, body, owner)
    if switch:
        config.set_current(context)
    return config.dump()


def remove_cluster(text: str, key: str, *, context: str = "", user: str = "") -> RemovalResult:
    """Removes our contexts of the cluster with this name or id from the text.

    With `context` only that one, with `user` only those issued for that user. Unchanged when there are none.
    Refused when the name means several clusters; Exists when the context named is not ours.
    """
    config = _Config(text)
    if context:
        if config.find("contexts", context) is None:
            return RemovalResult(text)
        if (owner := config.find_owner("contexts", context)) is None:
            raise Exists(f"the context {context!r} is not Boatyard's; it is left alone")
        owners = {context: owner}
    else:
        owners = {
            name: owner
            for name, owner in config.list_owned_contexts()
            if key in (owner.name, owner.cluster) and user in ("", owner.user)
        }
    if not owners:
        return RemovalResult(text)
    if len({owner.cluster for owner in owners.values()}) > 1:
        raise Refused(
            f"{key!r} means several clusters here; name one with --context: {', '.join(owners)}"
        )
    broken = config.remove_contexts(owners)
    return RemovalResult(config.dump(), tuple(owners), broken)


def list_contexts(text: str, cluster: str) -> tuple[str, ...]:
    """The names of our contexts of the cluster with this id."""
    return tuple(
        name for name, owner in _Config(text).list_owned_contexts() if owner.cluster == cluster
    )


class _Config:
    """A kubeconfig as YAML nodes."""

    def __init__(self, text: str) -> None:
        root = _compose_mapping(text, "your kubeconfig")
        self._root = root or _make_mapping_node({"apiVersion": "v1", "kind": "Config"})
        for table, _ in _SECTIONS:
            self._read_entries(table)
        kind = _get_value(self._root, "kind")
        if kind is not None and _scalar_text(kind) not in ("Config", ""):
            raise Refused("your kubeconfig is of another kind than Config; it is left as it is")

    def find(self, table: str, name: str) -> yaml.MappingNode | None:
        return next(
            (entry for entry in self._read_entries(table) if _entry_name(entry) == name), None
        )

    def find_owner(self, table: str, name: str) -> EntryOwner | None:
        entry = self.find(table, name)
        return None if entry is None else _parse_owner(entry, dict(_SECTIONS)[table])

    def list_owned_contexts(self) -> Iterator[tuple[str, EntryOwner]]:
        """Every context that carries our mark, with its owner."""
        for entry in self._read_entries("contexts"):
            owner = _parse_owner(entry, "context")
            if owner is not None:
                yield _entry_name(entry), owner

    def put_entry(
        self, table: str, name: str, body: Mapping[str, object], owner: EntryOwner
    ) -> None:
        part = dict(_SECTIONS)[table]
        old = self.find(table, name)
        if old is not None:
            old_owner = _parse_owner(old, part)
            if old_owner is None:
                conflict = "is not Boatyard's"
            elif not owner.is_successor(old_owner):
                conflict = f"is of the cluster {old_owner.name!r} of {old_owner.tenant} at {old_owner.server}"
            else:
                conflict = ""
            if conflict:
                raise Exists(
                    f"there is a {part} {name!r} in your kubeconfig that {conflict};"
                    " choose another name with --context"
                )
        mark = {key: value for key, value in asdict(owner).items() if value}
        marked_body = {**body, "extensions": [{"name": EXTENSION_NAME, "extension": mark}]}
        entry = _make_mapping_node({"name": name, part: marked_body})
        entries = self._get_or_create_list(table)
        if old is None:
            entries.value.append(entry)
        else:
            entries.value[entries.value.index(old)] = entry

    def set_current(self, context: str) -> None:
        _set_value(self._root, "current-context", _make_scalar_node(context))

    def remove_contexts(self, contexts: Mapping[str, EntryOwner]) -> tuple[str, ...]:
        """Removes the contexts with their clusters and users of ours; returns other contexts that used those."""
        removed_names: dict[str, set[str]] = {
            "clusters": set(),
            "users": set(),
            "contexts": set(contexts),
        }
        for name, owner in contexts.items():
            for table, part in _SECTIONS[:2]:
                used_name = _context_reference(self.find("contexts", name), part)
                used_owner = self.find_owner(table, used_name)
                if used_owner is not None and used_owner.cluster == owner.cluster:
                    removed_names[table].add(used_name)
        for table, names in removed_names.items():
            entries = self._get_or_create_list(table)
            entries.value[:] = [entry for entry in entries.value if _entry_name(entry) not in names]
        current = _get_value(self._root, "current-context")
        if current is not None and _scalar_text(current) in contexts:
            self.set_current("")
        return tuple(
            _entry_name(entry)
            for entry in self._read_entries("contexts")
            if _context_reference(entry, "cluster") in removed_names["clusters"]
            or _context_reference(entry, "user") in removed_names["users"]
        )

    def dump(self) -> str:
        text: str = yaml.serialize(
            self._root, Dumper=yaml.SafeDumper, width=float("inf"), allow_unicode=True
        )
        return text

    def _read_entries(self, table: str) -> Sequence[yaml.MappingNode]:
        entries = _get_value(self._root, table)
        if entries is None or _is_null(entries):
            return ()
        if not isinstance(entries, yaml.SequenceNode) or not all(
            isinstance(entry, yaml.MappingNode) and _entry_name(entry) for entry in entries.value
        ):
            raise Refused(
                f"{table} in your kubeconfig is not a list of named entries; left as it is"
            )
        return tuple(entries.value)

    def _get_or_create_list(self, table: str) -> yaml.SequenceNode:
        entries = _get_value(self._root, table)
        if isinstance(entries, yaml.SequenceNode):
            if not entries.value:
                entries.flow_style = False  # what was [] gets lines
            return entries
        empty = yaml.SequenceNode("tag:yaml.org,2002:seq", [], flow_style=False)
        _set_value(self._root, table, empty)
        return empty


def _select_entries(received: str, name: str) -> tuple[Mapping[str, object], ...]:
    """Cluster, user and context of a kubeconfig from a server, with the fields that may be copied."""
    source_name = "the kubeconfig of the cluster"
    root = _compose_mapping(received, source_name)
    if root is None:
        raise Refused(f"{source_name} is empty")
    contexts = _bodies_by_name(root, "contexts", "context", source_name)
    current = _scalar_text(_get_value(root, "current-context"))
    if not current and len(contexts) == 1:
        (current,) = contexts
    if current not in contexts:
        raise Refused(f"{source_name} does not say which of its contexts to use")
    context = contexts[current]
    cluster = _bodies_by_name(root, "clusters", "cluster", source_name).get(
        _scalar_text(_get_value(context, "cluster"))
    )
    user = _bodies_by_name(root, "users", "user", source_name).get(
        _scalar_text(_get_value(context, "user"))
    )
    if cluster is None or user is None:
        raise Refused(f"{source_name} lacks the cluster or the user of its context")
    context_body: dict[str, object] = {"cluster": name, "user": name}
    if namespace := _scalar_text(_get_value(context, "namespace")):
        context_body["namespace"] = namespace
    return (
        _copy_fields(cluster, "cluster", source_name),
        _copy_fields(user, "user", source_name),
        context_body,
    )


def _bodies_by_name(
    root: yaml.MappingNode, table: str, part: str, source_name: str
) -> dict[str, yaml.MappingNode]:
    node = _get_value(root, table)
    entries = node.value if isinstance(node, yaml.SequenceNode) else []
    bodies = {}
    for entry in entries:
        body = _get_value(entry, part) if isinstance(entry, yaml.MappingNode) else None
        if not isinstance(body, yaml.MappingNode):
            raise Refused(f"{table} in {source_name} is not a list of named entries")
        bodies[_entry_name(entry)] = body
    return bodies


def _copy_fields(body: yaml.MappingNode, part: str, source_name: str) -> Mapping[str, object]:
    accepted_fields: dict[str, object] = {}
    for key, value in body.value:
        name = _scalar_text(key)
        if name == "extensions":
            continue
        if name not in _COPIED_FIELDS[part] or not isinstance(value, yaml.ScalarNode):
            raise Refused(
                f"{source_name} has {name!r} for its {part}, which is not put among yours unseen;"
                " write it to a file with -o FILE and look at it"
            )
        accepted_fields[name] = (
            value.value.lower() == "true" if name in _BOOLEAN_FIELDS else value.value
        )
    return accepted_fields


# --- nodes ------------------------------------------------------------------------------------


def _compose_mapping(text: str, source_name: str) -> yaml.MappingNode | None:
    """Parses the text, which must be one mapping; None when it is empty."""
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError, ValueError):
        # Not chained, and without the parser's words: they quote what may be a secret.
        raise Refused(f"{source_name} is not YAML; it is left as it is") from None
    if root is None or _is_null(root):
        return None
    if not isinstance(root, yaml.MappingNode):
        raise Refused(f"{source_name} is not a mapping; it is left as it is")
    keys = [_scalar_text(key) for key, _ in root.value]
    doubled = [key for key in keys if keys.count(key) > 1]
    if doubled:
        raise Refused(f"{source_name} has {doubled[0]!r} twice; it is left as it is")
    return root


def _get_value(mapping: yaml.Node, name: str) -> yaml.Node | None:
    if not isinstance(mapping, yaml.MappingNode):
        return None
    return next((value for key, value in mapping.value if _scalar_text(key) == name), None)


def _set_value(mapping: yaml.MappingNode, name: str, value: yaml.Node) -> None:
    for index, (key, _) in enumerate(mapping.value):
        if _scalar_text(key) == name:
            mapping.value[index] = (key, value)
            return
    mapping.value.append((_make_scalar_node(name), value))


def _scalar_text(node: yaml.Node | None) -> str:
    return node.value if isinstance(node, yaml.ScalarNode) and not _is_null(node) else ""


def _is_null(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:null"


def _entry_name(entry: yaml.Node) -> str:
    return _scalar_text(_get_value(entry, "name"))


def _context_reference(context: yaml.MappingNode | None, part: str) -> str:
    body = _get_value(context, "context") if context is not None else None
    return _scalar_text(_get_value(body, part)) if body is not None else ""


def _parse_owner(entry: yaml.MappingNode, part: str) -> EntryOwner | None:
    """The owner of an entry; None when it does not carry our mark."""
    body = _get_value(entry, part)
    extensions = _get_value(body, "extensions") if body is not None else None
    for extension in extensions.value if isinstance(extensions, yaml.SequenceNode) else ():
        mark = _get_value(extension, "extension")
        if _entry_name(extension) == EXTENSION_NAME and mark is not None:
            return EntryOwner(
                **{
                    field.name: _scalar_text(_get_value(mark, field.name))
                    for field in fields(EntryOwner)
                }
            )
    return None


def _make_mapping_node(value: Mapping[str, object]) -> yaml.MappingNode:
    node = _PlainRepresenter(default_flow_style=False, sort_keys=False).represent_data(value)
    assert isinstance(node, yaml.MappingNode)
    return node


def _make_scalar_node(text: str) -> yaml.ScalarNode:
    node = _PlainRepresenter().represent_data(text)
    assert isinstance(node, yaml.ScalarNode)
    return node


class _PlainRepresenter(yaml.representer.SafeRepresenter):
    def ignore_aliases(self, data: object) -> bool:
        return True
