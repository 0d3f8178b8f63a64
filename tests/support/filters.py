"""Filters and clusters to try them on, for the suites that compare the back-ends with each other."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from hypothesis import strategies as st

from boatyard.model.generated.osac import (
    Cluster,
    ClusterNodeSet,
    ClusterSpec,
    ClusterState,
    ClusterStatus,
    ClusterTemplateReference,
    ClusterVersionReference,
    HostTypeReference,
    Metadata,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TEXTS = [
    "",
    "a",
    "b",
    "ab",
    "a%",
    "a_b",
    "it's",
    'say "hi"',
    "\\",
    "é",
    "日本",
    "\U0001f6a2",
    "z\nz",
]
KEYS = ["env", "x/y", "a.b", "it's"]
NUMBERS = [0, 1, 2, 3, -1, 7, 2**31, 2**62]
MOMENTS = [NOW + timedelta(days=days, microseconds=days) for days in range(-2, 3)]
STATES = [0, 1, 2, 4, 1000]

STRINGS = [
    "id", "metadata.name", "metadata.tenant", "metadata.project", "metadata.creator",
    "metadata.display_name", "metadata.description", "spec.ssh_public_key", "spec.template.id",
    "spec.template.name", "spec.version.id", "status.hub", "status.api_url",
]  # fmt: skip
MAPPED = [f'metadata.labels["{key}"]' for key in KEYS] + ['spec.node_sets["w"].host_type.id']
INTS = ["metadata.version", "metadata.generation"]
MAPPED_INTS = ['spec.node_sets["w"].size', "spec.node_sets.m.size"]
TIMES = ["metadata.creation_timestamp", "metadata.deletion_timestamp"]
BOOLS = ["spec.auto_external_ip_attachment"]
MESSAGES = ["metadata", "spec", "status", "spec.template", "spec.version", "spec.network"]
COLLECTIONS = ["metadata.labels", "metadata.finalizers", "spec.node_sets", "status.conditions"]


def population(size: int = 80) -> list[Cluster]:
    """Clusters in which every field is now set, now unset, and now empty."""
    chance = random.Random(20260101)

    def some(values: list[Any], unset: Any) -> Any:
        return chance.choice(values) if chance.random() < 0.6 else unset

    def node_sets() -> dict[str, ClusterNodeSet]:
        kinds = [HostTypeReference(id=text) for text in TEXTS[:4]]
        sizes = [number for number in NUMBERS if number < 2**31]
        return {
            key: ClusterNodeSet(host_type=some(kinds, HostTypeReference()), size=some(sizes, 0))
            for key in ("w", "m")
            if chance.random() < 0.6
        }

    def one(number: int) -> Cluster:
        metadata = Metadata(
            name=f"{some(TEXTS, 'n')}{number}" if number % 5 else "",
            tenant=some(["acme", "shared", "a"], "other"),
            project=some(TEXTS, ""),
            creator=some(TEXTS, ""),
            display_name=some(TEXTS, ""),
            description=some(TEXTS, ""),
            generation=some(NUMBERS, 0),
            labels={key: chance.choice(TEXTS) for key in KEYS if chance.random() < 0.4},
            finalizers=tuple(text for text in TEXTS if chance.random() < 0.2),
            creation_timestamp=some(MOMENTS, None),
            deletion_timestamp=some(MOMENTS, None),
        )
        spec = ClusterSpec(
            template=ClusterTemplateReference(id=some(TEXTS, ""), name=some(TEXTS, "")),
            version=some(
                [ClusterVersionReference(id=text) for text in TEXTS], ClusterVersionReference()
            ),
            ssh_public_key=some(TEXTS, None),
            auto_external_ip_attachment=some([True], False),
            node_sets=node_sets(),
        )
        status = ClusterStatus(
            state=ClusterState(some(STATES, 0)), hub=some(TEXTS, ""), api_url=some(TEXTS, "")
        )
        if number % 9 == 0:
            return Cluster(id=f"{number:03}", metadata=metadata)
        return Cluster(id=f"{number:03}", metadata=metadata, spec=spec, status=status)

    return [one(number) for number in range(size)]


def quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def moment(when: datetime) -> str:
    return f'timestamp("{when.isoformat()}")'


texts = st.sampled_from([*TEXTS, "00", "003", "n", "acme"]).map(quoted)
ints = st.sampled_from(NUMBERS).map(str)
moments = st.sampled_from(MOMENTS).map(moment)
states = st.sampled_from([*STATES, 3, 77]).map(str) | st.sampled_from(
    ["CLUSTER_STATE_READY", '"READY"', '"CLUSTER_STATE_DEGRADED"', "CLUSTER_STATE_UNSPECIFIED"]
)
order = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])


def field(names: list[str]) -> st.SearchStrategy[str]:
    return st.sampled_from(names).map(lambda name: f"this.{name}")


def compared(
    fields: st.SearchStrategy[str], constants: st.SearchStrategy[str]
) -> st.SearchStrategy[str]:
    sides = st.tuples(fields, order, constants)
    return (
        sides.map(" ".join)
        | sides.map(lambda side: f"{side[2]} {side[1]} {side[0]}")
        | st.tuples(fields, order, fields).map(" ".join)
        | st.tuples(fields, st.lists(constants, max_size=4)).map(
            lambda pair: f"{pair[0]} in [{', '.join(pair[1])}]"
        )
    )


def asked(strings: list[str]) -> st.SearchStrategy[str]:
    test = st.sampled_from(["startsWith", "endsWith", "contains"])
    return st.tuples(field(strings), test, texts).map(lambda it: f"{it[0]}.{it[1]}({it[2]})")


# What CEL itself answers in the same way: no missing map entries, no presence.
plain_leaves = (
    compared(field(STRINGS), texts)
    | compared(field(INTS), ints)
    | compared(field(["status.state"]), st.sampled_from(STATES).map(str))
    | asked(STRINGS)
    | field(BOOLS)
    | st.tuples(texts, field(["metadata.labels", "metadata.finalizers"])).map(" in ".join)
    | st.sampled_from(["true", "false"])
)
leaves = (
    plain_leaves
    | compared(field(STRINGS + MAPPED), texts)
    | compared(field(INTS + MAPPED_INTS), ints)
    | compared(field(["status.state"]), states)
    | compared(field(TIMES), moments)
    | asked(MAPPED)
    | field(STRINGS + INTS + TIMES + BOOLS + MESSAGES + COLLECTIONS + ["spec.node_sets.w.size"])
    .filter(lambda name: "[" not in name)
    .map(lambda name: f"has({name})")
    | st.tuples(
        field([*TIMES, "spec.ssh_public_key", "spec.template"]), st.sampled_from(["==", "!="])
    ).map(lambda it: f"{it[0]} {it[1]} null")
)


def grown(leaf: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Conditions joined with && || ! and brackets."""
    return st.recursive(
        leaf,
        lambda inner: (
            st.tuples(inner, st.sampled_from(["&&", "||"]), inner).map(
                lambda it: f"({it[0]}) {it[1]} ({it[2]})"
            )
            | inner.map(lambda it: f"!({it})")
        ),
        max_leaves=5,
    )


def as_cel(cluster: Cluster) -> dict[str, Any]:
    """The cluster for the reference evaluator: everything that is unset has its default."""
    unset = {"creation_timestamp": None, "deletion_timestamp": None}
    return {
        "id": cluster.id,
        "metadata": msgspec.structs.asdict(cluster.metadata)
        | {"finalizers": list(cluster.metadata.finalizers)}
        | unset,
        "spec": {
            "ssh_public_key": cluster.spec.ssh_public_key or "",
            "template": msgspec.structs.asdict(cluster.spec.template),
            "version": msgspec.structs.asdict(cluster.spec.version),
            "auto_external_ip_attachment": cluster.spec.auto_external_ip_attachment,
        },
        "status": {
            "state": int(cluster.status.state),
            "hub": cluster.status.hub,
            "api_url": cluster.status.api_url,
        },
    }
