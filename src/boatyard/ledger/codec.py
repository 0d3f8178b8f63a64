"""Converts documents to stored JSON, with secrets sealed, and to event JSON, with secrets masked; and back."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from boatyard.ledger.changes import LedgerDocument
from boatyard.ledger.seal import SEALED_PREFIX, Seal
from boatyard.model.errors import Refused

T = TypeVar("T")
MASK = "***"
_MASKED_BYTES = base64.b64encode(MASK.encode()).decode()
_SEALED_PREFIX = f'"{SEALED_PREFIX}'.encode()
Path = tuple[str, ...]


class Codec:
    """Knows the key and which paths of which kind are secret."""

    def __init__(self, seal: Seal, sensitive: Mapping[str, Sequence[str]]) -> None:
        self._seal = seal
        self._paths: dict[str, tuple[Path, ...]] = {
            kind: tuple(tuple(path.split(".")) for path in paths)
            for kind, paths in sensitive.items()
        }

    def encode(self, doc: LedgerDocument, version: int) -> tuple[msgspec.Raw, msgspec.Raw | None]:
        """The JSON to store with this version, and the JSON for events where that differs."""
        kind = type(doc).__name__
        if doc.metadata.version != version:
            metadata = msgspec.structs.replace(doc.metadata, version=version)
            doc = msgspec.structs.replace(doc, metadata=metadata)  # type: ignore[type-var]
        data = _encode(doc)
        paths = self._paths.get(kind, ())
        if not any(_has_value(doc, path) for path in paths):
            return msgspec.Raw(data), None

        def seal(text: str, path: Path) -> str:
            return self._seal.seal(text, f"{kind}/{doc.id}/{'.'.join(path)}")

        sealed = _rewrite(msgspec.json.decode(data), paths, seal)
        masked = _rewrite(msgspec.json.decode(data), paths, _make_masker(type(doc)))
        return msgspec.Raw(msgspec.json.encode(sealed)), msgspec.Raw(msgspec.json.encode(masked))

    def decode(self, cls: type[T], data: bytes, *, sealed: bool = False) -> T:
        """The document with its secrets in clear, or with `***` in their place."""
        if _SEALED_PREFIX not in data:
            return _get_decoder(cls).decode(data)
        kind = cls.__name__
        paths = self._paths.get(kind, ())
        if _are_all_texts(cls, paths):
            doc: Any = _get_decoder(cls).decode(data)
            for path in paths:
                place = f"{kind}/{doc.id}/{'.'.join(path)}"
                doc = _reveal(doc, path, None if sealed else self._seal, place)
            revealed: T = doc
            return revealed
        raw = msgspec.json.decode(data)

        def unseal(text: str, path: Path) -> str:
            return self._seal.unseal(text, f"{kind}/{raw.get('id', '')}/{'.'.join(path)}")

        change = _make_masker(cls) if sealed else unseal
        return msgspec.convert(_rewrite(raw, paths, change), cls)


def _encode(doc: Any) -> bytes:
    try:
        data = msgspec.json.encode(doc)
        # An empty message that is not its field's default would be stored, and has() would be true for it.
        return data if b"{}" not in data else msgspec.json.encode(_canonicalize(doc))
    except UnicodeEncodeError as error:
        raise Refused("the text holds a lone surrogate, which is no character") from error


def _canonicalize(value: Any) -> Any:
    """The same value, with every empty message replaced by the default of its field."""
    if isinstance(value, msgspec.Struct):
        changed = {}
        for field in msgspec.structs.fields(value):
            old = getattr(value, field.name)
            new = _canonicalize(old)
            if isinstance(new, msgspec.Struct) and new == field.default:
                new = field.default
            if new is not old:
                changed[field.name] = new
        return msgspec.structs.replace(value, **changed) if changed else value
    if isinstance(value, tuple) and value:
        return tuple(_canonicalize(item) for item in value)
    if isinstance(value, Mapping) and value:
        return {key: _canonicalize(item) for key, item in value.items()}
    return value


def _has_value(value: Any, path: Path) -> bool:
    for place, step in enumerate(path):
        if step == "*":
            items = value.values() if isinstance(value, Mapping) else value
            return any(_has_value(item, path[place + 1 :]) for item in items)
        value = getattr(value, step, None)
        if not value:
            return False
    return bool(value)


def _rewrite(raw: Any, paths: Sequence[Path], change: Callable[[str, Path], str]) -> Any:
    for path in paths:
        _rewrite_at(raw, path, (), change)
    return raw


def _rewrite_at(raw: Any, rest: Path, parents: Path, change: Callable[[str, Path], str]) -> None:
    """Changes, in place, every text found at the path or below it."""
    step, deeper = rest[0], rest[1:]
    if isinstance(raw, list):
        keys: Sequence[Any] = range(len(raw))
    elif isinstance(raw, dict):
        keys = list(raw) if step == "*" else [step] if step in raw else []
    else:
        return
    for key in keys:
        value, here = raw[key], (*parents, str(key))
        if deeper:
            _rewrite_at(value, deeper, here, change)
        elif isinstance(value, str):
            raw[key] = change(value, here)
        elif isinstance(value, dict | list):
            _rewrite_at(value, ("*",), here, change)
        elif value is not None:
            raise TypeError(f"{'.'.join(here)} is marked as secret but is no text")


_text_only_types: dict[type[Any], bool] = {}


def _are_all_texts(cls: type[Any], paths: Sequence[Path]) -> bool:
    """Whether every secret of a kind is a string: then the stored JSON can be decoded to the struct directly."""
    all_texts = _text_only_types.get(cls)
    if all_texts is None:
        all_texts = _text_only_types[cls] = all(_leads_to_text(cls, path) for path in paths)
    return all_texts


def _leads_to_text(cls: type[Any], path: Path) -> bool:
    kind: msgspec.inspect.Type = msgspec.inspect.type_info(cls)
    for step in path:
        if not isinstance(_strip_optional(kind), msgspec.inspect.StructType):
            return False
        kind = _step_into(kind, step)
    return isinstance(_strip_optional(kind), msgspec.inspect.StrType)


def _reveal(value: Any, path: Path, seal: Seal | None, place: str) -> Any:
    """A copy of the value with the text at the path unsealed, or masked when `seal` is None."""
    name, below = path[0], path[1:]
    old = getattr(value, name)
    if not old:
        return value
    if below:
        new = _reveal(old, below, seal, place)
        return value if new is old else msgspec.structs.replace(value, **{name: new})
    text = MASK if seal is None else seal.unseal(old, place)
    return msgspec.structs.replace(value, **{name: text})


def _make_masker(cls: type[Any]) -> Callable[[str, Path], str]:
    def mask(_text: str, path: Path) -> str:
        return _MASKED_BYTES if _is_bytes(cls, path) else MASK

    return mask


_bytes_paths: dict[tuple[type[Any], Path], bool] = {}


def _is_bytes(cls: type[Any], path: Path) -> bool:
    is_bytes = _bytes_paths.get((cls, path))
    if is_bytes is None:
        if len(_bytes_paths) > 1000:  # keys of maps are the callers' to choose
            _bytes_paths.clear()
        kind: msgspec.inspect.Type = msgspec.inspect.type_info(cls)
        for step in path:
            kind = _step_into(kind, step)
        is_bytes = _bytes_paths[cls, path] = isinstance(
            _strip_optional(kind), msgspec.inspect.BytesType
        )
    return is_bytes


def _step_into(kind: msgspec.inspect.Type, step: str) -> msgspec.inspect.Type:
    match _strip_optional(kind):
        case msgspec.inspect.StructType(fields=fields):
            return next(field.type for field in fields if field.encode_name == step)
        case msgspec.inspect.DictType(value_type=value):
            return value
        case (
            msgspec.inspect.VarTupleType(item_type=item) | msgspec.inspect.ListType(item_type=item)
        ):
            return item
        case other:
            return other


def _strip_optional(kind: msgspec.inspect.Type) -> msgspec.inspect.Type:
    """The type without `| None`."""
    if isinstance(kind, msgspec.inspect.UnionType):
        return next(t for t in kind.types if not isinstance(t, msgspec.inspect.NoneType))
    return kind


_decoders: dict[type[Any], msgspec.json.Decoder[Any]] = {}


def _get_decoder(cls: type[T]) -> msgspec.json.Decoder[T]:
    decoder = _decoders.get(cls)
    if decoder is None:
        decoder = _decoders[cls] = msgspec.json.Decoder(cls)
    return decoder
