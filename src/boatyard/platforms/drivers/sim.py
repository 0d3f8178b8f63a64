"""The simulated platform: hosted clusters of the twin, with install stages and nodes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import msgspec

from boatyard.model.outcome import Outcome
from boatyard.platforms.port import (
    ClusterAccess,
    DesiredCluster,
    DesiredNode,
    ObservedCluster,
    ObservedNode,
    RestMode,
)
from boatyard.twin.driver import ObservedThing, TwinDriver, expect_absent, expect_present
from boatyard.twin.services.control_planes import ClusterFields


class SimPlatform(TwinDriver):
    service = "platform"

    def needs_hosts(self, settings: Mapping[str, str]) -> bool:
        return True

    async def ensure_cluster(self, key: str, desired: DesiredCluster) -> Outcome:
        has_name = expect_present(key, name=desired.name)
        restore = desired.restore
        stored_fields = to_stored_fields(key, desired)
        expected = {**stored_fields, "target": desired.version, "rest": str(desired.rest)}
        if restore is not None:
            expected["restored"] = restore.request

        def matches(record: ObservedThing) -> bool:
            if record is None or not has_name(record):
                return False
            fields = ClusterFields(*record["extra"])._asdict()
            return all(fields[name] == value for name, value in expected.items())

        return await self.call_and_verify(
            "ensure_cluster",
            kind="cluster",
            id=key,
            so=matches,
            key=key,
            name=desired.name,
            version=desired.version,
            rest=str(desired.rest),
            restore=restore.request if restore else "",
            backup_key=restore.backup_key if restore else "",
            **stored_fields,
        )

    async def release_cluster(self, key: str) -> Outcome:
        return await self.call_and_verify(
            "release_cluster", kind="cluster", id=key, so=expect_absent(key), key=key
        )

    async def ensure_node(self, key: str, cluster_key: str, node: DesiredNode) -> Outcome:
        return await self.call_and_verify(
            "ensure_node",
            kind="node",
            id=key,
            so=expect_present(key, name=node.host, ref=cluster_key),
            key=key,
            cluster_key=cluster_key,
            slot=node.slot,
            node_set=node.node_set,
            host=node.host,
            address=node.address,
            host_type=node.host_type,
        )

    async def release_node(
        self, key: str, cluster_key: str, slot: str, *, drain: bool = True
    ) -> Outcome:
        return await self.call_and_verify(
            "release_node",
            kind="node",
            id=key,
            so=expect_absent(key),
            key=key,
            cluster_key=cluster_key,
            slot=slot,
            drain=drain,
        )

    async def choose_leaving(
        self, cluster_key: str, node_set: str, slots: Sequence[str], count: int
    ) -> Sequence[str]:
        chosen: Sequence[str] = await self.call_verb(
            "choose_leaving",
            cluster_key=cluster_key,
            node_set=node_set,
            slots=list(slots),
            count=count,
        )
        return chosen

    async def observe(self, cluster_key: str) -> ObservedCluster:
        state = await self.call_verb("observe", cluster_key=cluster_key)
        if not state["exists"]:
            return ObservedCluster(exists=False)
        return ObservedCluster(
            exists=True,
            available=state["available"],
            degraded=state["degraded"],
            version=state["version"],
            message=state["message"],
            rest=RestMode(state["rest"]),
            nodes=tuple(
                ObservedNode(node["slot"], node["node_set"], node["ready"], node["message"])
                for node in state["nodes"]
            ),
        )

    async def ensure_backup(self, key: str, cluster_key: str, folder: str = "") -> Outcome:
        return await self.call_and_verify(
            "ensure_backup",
            kind="backup",
            id=key,
            so=expect_present(key),
            key=key,
            cluster_key=cluster_key,
            folder=folder,
        )

    async def release_backup(self, key: str) -> Outcome:
        return await self.call_and_verify(
            "release_backup", kind="backup", id=key, so=expect_absent(key), key=key
        )

    async def access(self, cluster_key: str) -> ClusterAccess:
        return ClusterAccess(
            **await self.call_verb("access", cluster_key=cluster_key), simulated=True
        )


def to_stored_fields(key: str, desired: DesiredCluster) -> dict[str, str]:
    """Returns what the twin stores of a request beside name, version, rest and restore, in the twin's own form.

    The twin's journal is on disk, so the pull secret and the values of parameters are digests.
    """
    parameters = {
        name: digest_secret(key, msgspec.json.encode(value).decode())
        for name, value in desired.parameters.items()
    }
    return {
        "api_name": desired.api_name,
        "api_address": desired.api_address,
        "ingress_name": desired.ingress_name,
        "ingress_address": desired.ingress_address,
        "release_image": desired.release_image,
        "pod_cidr": desired.pod_cidr,
        "service_cidr": desired.service_cidr,
        "machine_cidr": desired.machine_cidr,
        "gateway": desired.gateway,
        "ssh_public_key": desired.ssh_public_key,
        "pull_secret": digest_secret(key, desired.pull_secret),
        "parameters": _json(parameters),
        "settings": _json(desired.settings),
        "host_types": _json(desired.host_types),
    }


def digest_secret(key: str, secret: str) -> str:
    """Returns a digest that shows only whether a secret has changed; empty for an empty secret.

    The cluster's key is part of it, so that the same secret in two clusters has two digests.
    """
    return hashlib.sha256(f"{key} {secret}".encode()).hexdigest()[:32] if secret else ""


def _json(values: Mapping[str, str] | Sequence[str]) -> str:
    return msgspec.json.encode(values, order="sorted").decode() if values else ""
