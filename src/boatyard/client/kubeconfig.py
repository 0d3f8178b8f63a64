"""Puts a cluster into a person's kubeconfig and takes it out again, as text. Called by `boatyard kubeconfig`.

The text is edited as YAML nodes, never as values: what else is in it keeps its spelling and its order,
so that nothing is lost that this version does not know. Comments are lost, as with kubectl.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields

import yaml

from boatyard.model.errors import Exists, Refused

MARK = "boatyard.io"  # the extension by which an entry is known as ours
_PARTS = (("clusters", "cluster"), ("users", "user"), ("contexts", "context"))

# What is taken over from a server. Files and programs it names would be ours.
_TAKEN: Mapping[str, frozenset[str]] = {
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
_FLAGS = frozenset({"insecure-skip-tls-verify", "disable-compression"})


@dataclass(frozen=True)
class Owner:
    """Which cluster an entry is for: its id, and what makes its name the only one of its kind."""

    cluster: str
    name: str
    server: str
    tenant: str
    project: str = ""
    user: str = ""  # when it was issued for somebody

    def is_successor(self, other: Owner) -> bool:
        """Whether both are the same cluster, or one of the same name that came after it."""
        place = (other.server, other.tenant, other.project, other.name)
        same_place = (self.server, self.tenant, self.project, self.name) == place
        return self.cluster == other.cluster or same_place


@dataclass(frozen=True)
class Removed:
    """The text without some contexts; `broken` are those of others that used what is gone."""

    text: str
    contexts: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()


def merge(text: str, received: str, *, context: str, owner: Owner, switch: bool = False) -> str:
    """The text with the cluster, user and context of `received` under the name `context`.

    Entries of the same cluster are replaced. Exists when the name is somebody else's; Refused when
    either text is not a kubeconfig.
    """
    if not context or not context.isprintable():
        raise Refused(f"{context!r} is no name for a context")
    config = _Config(text)
    for (table, _), body in zip(_PARTS, _chosen(received, context), strict=True):
        config.put(table, context, body, owner)
    if switch:
        config.set_current(context)
    return config.dump()


def remove(text: str, key: str, *, context: str = "", user: str = "") -> Removed:
    """The text without our contexts of the cluster with this name or id.

    Only the one named, or only those issued for `user`, when given. Nothing there: the text as it is.
    Refused when the name means several clusters; Exists when the context named is not ours.
    """
    config = _Config(text)
    if context:
        if config.find("contexts", context) is None:
            return Removed(text)
        if (owner := config.owner("contexts", context)) is None:
            raise Exists(f"the context {context!r} is not Boatyard's; it is left alone")
        found = {context: owner}
    else:
        found = {
            name: owner
            for name, owner in config.owners()
            if key in (owner.name, owner.cluster) and user in ("", owner.user)
        }
    if not found:
        return Removed(text)
    if len({owner.cluster for owner in found.values()}) > 1:
        raise Refused(
            f"{key!r} means several clusters here; name one with --context: {', '.join(found)}"
        )
    broken = config.take_out(found)
    return Removed(config.dump(), tuple(found), broken)


def contexts_of(text: str, cluster: str) -> tuple[str, ...]:
    """The names of our contexts of the cluster with this id."""
    return tuple(name for name, owner in _Config(text).owners() if owner.cluster == cluster)


class _Config:
    """A kubeconfig as YAML nodes."""

    def __init__(self, text: str) -> None:
        root = _composed(text, "your kubeconfig")
        self._root = root or _node({"apiVersion": "v1", "kind": "Config"})
        for table, _ in _PARTS:
            self._entries(table)
        kind = _get(self._root, "kind")
        if kind is not None and _text(kind) not in ("Config", ""):
            raise Refused("your kubeconfig is of another kind than Config; it is left as it is")

    def find(self, table: str, name: str) -> yaml.MappingNode | None:
        return next((one for one in self._entries(table) if _name(one) == name), None)

    def owner(self, table: str, name: str) -> Owner | None:
        entry = self.find(table, name)
        return None if entry is None else _owner(entry, dict(_PARTS)[table])

    def owners(self) -> Iterator[tuple[str, Owner]]:
        """Every context of ours."""
        for entry in self._entries("contexts"):
            owner = _owner(entry, "context")
            if owner is not None:
                yield _name(entry), owner

    def put(self, table: str, name: str, body: Mapping[str, object], owner: Owner) -> None:
        part = dict(_PARTS)[table]
        old = self.find(table, name)
        if old is not None:
            before = _owner(old, part)
            if before is None:
                whose = "is not Boatyard's"
            elif not owner.is_successor(before):
                whose = f"is of the cluster {before.name!r} of {before.tenant} at {before.server}"
            else:
                whose = ""
            if whose:
                raise Exists(
                    f"there is a {part} {name!r} in your kubeconfig that {whose};"
                    " choose another name with --context"
                )
        about = {key: value for key, value in asdict(owner).items() if value}
        marked = {**body, "extensions": [{"name": MARK, "extension": about}]}
        entry = _node({"name": name, part: marked})
        entries = self._list(table)
        if old is None:
            entries.value.append(entry)
        else:
            entries.value[entries.value.index(old)] = entry

    def set_current(self, context: str) -> None:
        _set(self._root, "current-context", _scalar(context))

    def take_out(self, contexts: Mapping[str, Owner]) -> tuple[str, ...]:
        """Takes out the contexts and the clusters and users of ours they name; who else used those."""
        gone: dict[str, set[str]] = {"clusters": set(), "users": set(), "contexts": set(contexts)}
        for name, owner in contexts.items():
            for table, part in _PARTS[:2]:
                used = _reference(self.find("contexts", name), part)
                mark = self.owner(table, used)
                if mark is not None and mark.cluster == owner.cluster:
                    gone[table].add(used)
        for table, names in gone.items():
            entries = self._list(table)
            entries.value[:] = [one for one in entries.value if _name(one) not in names]
        current = _get(self._root, "current-context")
        if current is not None and _text(current) in contexts:
            self.set_current("")
        return tuple(
            _name(one)
            for one in self._entries("contexts")
            if _reference(one, "cluster") in gone["clusters"]
            or _reference(one, "user") in gone["users"]
        )

    def dump(self) -> str:
        text: str = yaml.serialize(
            self._root, Dumper=yaml.SafeDumper, width=float("inf"), allow_unicode=True
        )
        return text

    def _entries(self, table: str) -> Sequence[yaml.MappingNode]:
        found = _get(self._root, table)
        if found is None or _is_null(found):
            return ()
        if not isinstance(found, yaml.SequenceNode) or not all(
            isinstance(one, yaml.MappingNode) and _name(one) for one in found.value
        ):
            raise Refused(
                f"{table} in your kubeconfig is not a list of named entries; left as it is"
            )
        return tuple(found.value)

    def _list(self, table: str) -> yaml.SequenceNode:
        found = _get(self._root, table)
        if isinstance(found, yaml.SequenceNode):
            if not found.value:
                found.flow_style = False  # what was [] gets lines
            return found
        empty = yaml.SequenceNode("tag:yaml.org,2002:seq", [], flow_style=False)
        _set(self._root, table, empty)
        return empty


def _chosen(received: str, name: str) -> tuple[Mapping[str, object], ...]:
    """Cluster, user and context of a kubeconfig that a server gave, with what may be taken over of it."""
    what = "the kubeconfig of the cluster"
    root = _composed(received, what)
    if root is None:
        raise Refused(f"{what} is empty")
    contexts = _named(root, "contexts", "context", what)
    current = _text(_get(root, "current-context"))
    if not current and len(contexts) == 1:
        (current,) = contexts
    if current not in contexts:
        raise Refused(f"{what} does not say which of its contexts to use")
    context = contexts[current]
    cluster = _named(root, "clusters", "cluster", what).get(_text(_get(context, "cluster")))
    user = _named(root, "users", "user", what).get(_text(_get(context, "user")))
    if cluster is None or user is None:
        raise Refused(f"{what} lacks the cluster or the user of its context")
    mine: dict[str, object] = {"cluster": name, "user": name}
    if namespace := _text(_get(context, "namespace")):
        mine["namespace"] = namespace
    return _taken(cluster, "cluster", what), _taken(user, "user", what), mine


def _named(root: yaml.MappingNode, table: str, part: str, what: str) -> dict[str, yaml.MappingNode]:
    found = _get(root, table)
    entries = found.value if isinstance(found, yaml.SequenceNode) else []
    named = {}
    for entry in entries:
        body = _get(entry, part) if isinstance(entry, yaml.MappingNode) else None
        if not isinstance(body, yaml.MappingNode):
            raise Refused(f"{table} in {what} is not a list of named entries")
        named[_name(entry)] = body
    return named


def _taken(body: yaml.MappingNode, part: str, what: str) -> Mapping[str, object]:
    taken: dict[str, object] = {}
    for key, value in body.value:
        name = _text(key)
        if name == "extensions":
            continue
        if name not in _TAKEN[part] or not isinstance(value, yaml.ScalarNode):
            raise Refused(
                f"{what} has {name!r} for its {part}, which is not put among yours unseen;"
                " write it to a file with -o FILE and look at it"
            )
        taken[name] = value.value.lower() == "true" if name in _FLAGS else value.value
    return taken


# --- nodes ------------------------------------------------------------------------------------


def _composed(text: str, what: str) -> yaml.MappingNode | None:
    """The one mapping in the text; None when there is nothing in it."""
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError, ValueError):
        # Not chained, and without the parser's words: they quote what may be a secret.
        raise Refused(f"{what} is not YAML; it is left as it is") from None
    if root is None or _is_null(root):
        return None
    if not isinstance(root, yaml.MappingNode):
        raise Refused(f"{what} is not a mapping; it is left as it is")
    keys = [_text(key) for key, _ in root.value]
    doubled = [key for key in keys if keys.count(key) > 1]
    if doubled:
        raise Refused(f"{what} has {doubled[0]!r} twice; it is left as it is")
    return root


def _get(mapping: yaml.Node, name: str) -> yaml.Node | None:
    if not isinstance(mapping, yaml.MappingNode):
        return None
    return next((value for key, value in mapping.value if _text(key) == name), None)


def _set(mapping: yaml.MappingNode, name: str, value: yaml.Node) -> None:
    for index, (key, _) in enumerate(mapping.value):
        if _text(key) == name:
            mapping.value[index] = (key, value)
            return
    mapping.value.append((_scalar(name), value))


def _text(node: yaml.Node | None) -> str:
    return node.value if isinstance(node, yaml.ScalarNode) and not _is_null(node) else ""


def _is_null(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:null"


def _name(entry: yaml.Node) -> str:
    return _text(_get(entry, "name"))


def _reference(context: yaml.MappingNode | None, part: str) -> str:
    body = _get(context, "context") if context is not None else None
    return _text(_get(body, part)) if body is not None else ""


def _owner(entry: yaml.MappingNode, part: str) -> Owner | None:
    """Whose the entry is, when it carries our mark."""
    body = _get(entry, part)
    extensions = _get(body, "extensions") if body is not None else None
    for one in extensions.value if isinstance(extensions, yaml.SequenceNode) else ():
        about = _get(one, "extension")
        if _name(one) == MARK and about is not None:
            return Owner(**{field.name: _text(_get(about, field.name)) for field in fields(Owner)})
    return None


def _node(value: Mapping[str, object]) -> yaml.MappingNode:
    node = _Plain(default_flow_style=False, sort_keys=False).represent_data(value)
    assert isinstance(node, yaml.MappingNode)
    return node


def _scalar(text: str) -> yaml.ScalarNode:
    node = _Plain().represent_data(text)
    assert isinstance(node, yaml.ScalarNode)
    return node


class _Plain(yaml.representer.SafeRepresenter):
    def ignore_aliases(self, data: object) -> bool:
        return True
