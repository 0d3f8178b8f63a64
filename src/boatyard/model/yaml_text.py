"""Reads untrusted YAML without harm to this process. Pure; called for kubeconfigs."""

from __future__ import annotations

from typing import Any

import yaml

DEEPEST_NESTING = 32

# The C loader where it is there: a kubeconfig with certificates takes the other 10 ms.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class NotYaml(ValueError):
    """The text is not acceptable YAML. The message quotes nothing of the text."""


def load_yaml(text: str | bytes) -> Any:
    """Returns the value of one document. Raises NotYaml for other text, deep nesting and aliases.

    The loader goes down into nested lists by recursion in C: some ten thousand opening brackets end the process.
    Reading the same text as events needs no recursion, so they are counted first.
    """
    try:
        _check_nesting(text)
        return yaml.load(text, Loader=_LOADER)
    except yaml.YAMLError:
        # Not chained: the parser quotes the line it stumbled over.
        raise NotYaml("it is not YAML") from None


def _check_nesting(text: str | bytes) -> None:
    depth = 0
    for event in yaml.parse(text, Loader=_LOADER):
        match event:
            case yaml.CollectionStartEvent():
                depth += 1
                if depth > DEEPEST_NESTING:
                    raise NotYaml(f"it is nested more than {DEEPEST_NESTING} levels deep")
            case yaml.CollectionEndEvent():
                depth -= 1
            case yaml.AliasEvent():
                # A few lines of aliases of aliases expand to more values than fit into memory.
                raise NotYaml("it uses aliases (*name); write the values out")
