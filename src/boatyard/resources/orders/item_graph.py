"""The kinds of items of an order and their dependencies. Declared once; read by plan, progress and receipts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from boatyard.roles import phases


@dataclass(frozen=True)
class ItemKind:
    """One kind of item. `needs` names the kinds that must be present before it.

    `rank`: it waits until every item of a lower rank is confirmed. `leaves_nothing`: there is nothing to release.
    `apart`: never planned by an order; the steps only release what a deletion left of it.
    `phase`: the part of the template's role that it runs; planned only if the role has that part.
    """

    name: str
    step: str
    needs: tuple[str, ...] = ()
    per_node: bool = False
    rank: int = 0
    leaves_nothing: bool = False
    never_planned: bool = False
    phase: str = ""


# The run of a role's delete part: planned by a deletion, and every other release waits for it.
DELETE_HOOK = "farewell"

ITEM_KINDS: Mapping[str, ItemKind] = {
    kind.name: kind
    for kind in (
        ItemKind("role", "role", phase=phases.INSTALL),
        ItemKind("host", "hosts", per_node=True),
        ItemKind("l2", "network"),
        ItemKind("port", "network", needs=("host", "l2"), per_node=True),
        ItemKind("agent", "network", needs=("port",), per_node=True, leaves_nothing=True),
        ItemKind("l3", "network", needs=("l2", "agent")),
        ItemKind("binding", "network", needs=("l3", "l2")),
        ItemKind("api-address", "addresses", needs=("binding",)),
        ItemKind("ingress-address", "addresses", needs=("binding",)),
        ItemKind("api-name", "names", needs=("api-address",)),
        ItemKind("ingress-name", "names", needs=("ingress-address",)),
        ItemKind(
            "pre_install", "pre_install", needs=("api-name", "ingress-name"), phase="pre_install"
        ),
        ItemKind("cluster", "install", needs=("api-name", "ingress-name", "pre_install")),
        ItemKind("node", "install", needs=("cluster", "agent"), per_node=True),
        ItemKind("post_install", "post_install", needs=("cluster", "node"), phase="post_install"),
        ItemKind("scale", "scale", needs=("post_install", "node"), rank=1, phase="scale"),
        ItemKind("check", "validate", needs=("cluster", "node"), rank=2, leaves_nothing=True),
        ItemKind("acceptance", "acceptance", needs=("cluster", "node"), rank=3, phase="validate"),
        ItemKind(DELETE_HOOK, "delete", phase="delete"),
        ItemKind("backup", "install", never_planned=True),
    )
}

# Items of a node that runs on a host; a platform that creates machines itself needs none of them.
HOST_ITEM_KINDS = frozenset({"host", "port", "agent"})

STEPS: tuple[str, ...] = tuple(dict.fromkeys(kind.step for kind in ITEM_KINDS.values()))
# Steps that an order has only if its template's role has a part for them.
ROLE_STEPS = frozenset(kind.step for kind in ITEM_KINDS.values() if kind.phase)
ATTEMPT_FACT = "attempt"  # fact of a run: the number of its attempt, from 1
# Facts of a successful run: how many tasks, and how many of them changed something.
TASK_COUNT_FACT, CHANGED_COUNT_FACT = "run.tasks", "run.changed"
RENEWAL_TIME_FACT = (
    "ask_access_at"  # fact of an order: when to fetch its expiring credentials again
)
ROLE_FACT_PREFIX = (
    "role."  # prefix of facts that a role has reported, in items and in the order's status
)


def list_direct_dependencies(step: str) -> tuple[str, ...]:
    """The steps this one depends on, in the order of the plan."""
    needed = {
        ITEM_KINDS[need].step
        for kind in ITEM_KINDS.values()
        if kind.step == step
        for need in kind.needs
    }
    return tuple(name for name in STEPS if name in needed and name != step)
