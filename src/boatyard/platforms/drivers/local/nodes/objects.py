"""Renders and reads the Node and Lease objects of simulated nodes. Pure; called by the agent."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from boatyard.model.conditions import transition_time
from boatyard.platforms.drivers.local.nodes.machines import MachineState
from boatyard.platforms.drivers.local.nodes.node_health import boot_id, stable_uuid
from boatyard.platforms.drivers.local.nodes.spec import NodeSpec

LEASE_NAMESPACE = "kube-node-lease"
LEAVING_ANNOTATION = (
    "boatyard.io/leaving"  # annotation of a Node drained for removal: it is not registered again
)
NODE_SET_LABEL = "boatyard.io/node-set"

_CAPACITY = {"cpu": "8", "memory": "32Gi", "pods": "110", "ephemeral-storage": "100Gi"}
_PRESSURES = (
    ("MemoryPressure", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
)
_READY_REASON = ("KubeletReady", "kubelet is posting ready status")
_UNREADY_REASON = ("KubeletNotReady", "the machine reports that it is not ready")
_OWN_CONDITIONS = frozenset({"Ready", *(name for name, _, _ in _PRESSURES)})


class NodeCondition(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    type: str
    status: str
    reason: str = ""
    message: str = ""
    # None: an API server returns a missing time as null.
    last_transition_time: str | None = None
    last_heartbeat_time: str | None = None


_NO_CONDITION = NodeCondition(type="", status="")


class NodeSummary(msgspec.Struct, gc=False, frozen=True):
    """The few fields that are kept of a Node object: a thousand of them must cost little memory."""

    uid: str
    resource_version: int
    boot_id: str
    version: str
    addresses: tuple[str, ...]
    leaving: bool
    has_labels: bool  # has the labels of its spec
    conditions: tuple[NodeCondition, ...]

    @property
    def ready_status(self) -> str:
        return next(
            (condition.status for condition in self.conditions if condition.type == "Ready"), ""
        )


def summarize_node(node: Mapping[str, Any], spec: NodeSpec | None) -> NodeSummary:
    metadata, status = node["metadata"], node.get("status") or {}
    info = status.get("nodeInfo") or {}
    labels = metadata.get("labels") or {}
    desired_labels = {} if spec is None else node_labels(spec)
    return NodeSummary(
        uid=metadata["uid"],
        resource_version=int(metadata["resourceVersion"]),
        boot_id=info.get("bootID", ""),
        version=info.get("kubeletVersion", ""),
        addresses=tuple(address.get("address", "") for address in status.get("addresses") or ()),
        leaving=LEAVING_ANNOTATION in (metadata.get("annotations") or {}),
        has_labels=desired_labels.items() <= labels.items(),
        conditions=msgspec.convert(status.get("conditions") or (), tuple[NodeCondition, ...]),
    )


def is_current(summary: NodeSummary, spec: NodeSpec, machine: MachineState, boot: str) -> bool:
    """Whether the Node object shows the present state of the node."""
    return (
        summary.ready_status == ("False" if machine.unready else "True")
        and summary.boot_id == boot
        and summary.version == kubelet_version(spec)
        and summary.addresses == (spec.ip,)
    )


def node_body(spec: NodeSpec, machine: MachineState, now: datetime) -> dict[str, Any]:
    """Renders a Node object like one that a kubelet registers."""
    ranges = {"podCIDR": spec.pod_cidr, "podCIDRs": [spec.pod_cidr]} if spec.pod_cidr else {}
    return {
        "metadata": {
            "name": spec.name,
            "labels": node_labels(spec),
            "annotations": {"volumes.kubernetes.io/controller-managed-attach-detach": "true"},
        },
        "spec": ranges,
        "status": node_status(spec, machine, (), now),
    }


def node_labels(spec: NodeSpec) -> dict[str, str]:
    return {
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "kubernetes.io/hostname": spec.name,
        "node-role.kubernetes.io/worker": "",
        NODE_SET_LABEL: spec.node_set,
        **spec.labels,
    }


def node_status(
    spec: NodeSpec, machine: MachineState, before: Sequence[NodeCondition], now: datetime
) -> dict[str, Any]:
    """Renders the whole status. Conditions that others have added stay."""
    capacity = {**_CAPACITY, **spec.capacity}
    # The tenant must not see host names of the data centre.
    machine_id = hashlib.sha256(f"machine {spec.host}".encode()).hexdigest()[:32]
    return {
        "capacity": capacity,
        "allocatable": capacity,
        "conditions": _conditions(machine, before, now),
        "addresses": [{"type": "InternalIP", "address": spec.ip}],
        "nodeInfo": {
            "machineID": machine_id,
            "systemUUID": stable_uuid(f"system {spec.host}"),
            "bootID": boot_id(spec, machine),
            "kernelVersion": "6.1.0-simulated",
            "osImage": "Boatyard simulated machine",
            "containerRuntimeVersion": "simulated://1.0.0",
            "kubeletVersion": kubelet_version(spec),
            "kubeProxyVersion": "",
            "operatingSystem": "linux",
            "architecture": "amd64",
        },
    }


def kubelet_version(spec: NodeSpec) -> str:
    return f"v{spec.version.removeprefix('v')}" if spec.version else ""


def _conditions(
    machine: MachineState, before: Sequence[NodeCondition], now: datetime
) -> list[dict[str, Any]]:
    previous = {condition.type: condition for condition in before}
    desired = [(name, "False", reason, message) for name, reason, message in _PRESSURES]
    desired.append(
        ("Ready", "False", *_UNREADY_REASON)
        if machine.unready
        else ("Ready", "True", *_READY_REASON)
    )
    moment = format_rfc3339(now)
    conditions = [
        msgspec.to_builtins(condition)
        for condition in before
        if condition.type not in _OWN_CONDITIONS
    ]
    for name, status, reason, message in desired:
        last = previous.get(name, _NO_CONDITION)
        since = transition_time(status, last.status, last.last_transition_time, moment)
        conditions.append(
            {
                "type": name,
                "status": status,
                "reason": reason,
                "message": message,
                "lastHeartbeatTime": moment,
                "lastTransitionTime": since,
            }
        )
    return conditions


class NodeLease:
    """The lease of a node. Its body is rendered a hundred times a second, so all but two fields are prepared bytes."""

    __slots__ = ("_head", "_tail", "resource_version", "uid")

    def __init__(self, name: str, node_uid: str, seconds: int, resource_version: str = "") -> None:
        owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": node_uid}
        metadata = {"name": name, "namespace": LEASE_NAMESPACE, "ownerReferences": [owner]}
        spec_json = f'"spec":{{"holderIdentity":"{name}","leaseDurationSeconds":{seconds}'
        kind_json = '"apiVersion":"coordination.k8s.io/v1","kind":"Lease"'
        metadata_json = msgspec.json.encode(metadata)[:-1].decode()
        self.uid = node_uid
        self.resource_version = resource_version
        self._head = f'{{{kind_json},"metadata":{metadata_json}'.encode()
        self._tail = f'}},{spec_json},"renewTime":"'.encode()

    def render(self, now: datetime) -> bytes:
        """Renders the lease with the version last read, so that two agents of one node get a conflict."""
        version = self.resource_version
        guard = f',"resourceVersion":"{version}"'.encode() if version else b""
        return b'%b%b%b%b"}}' % (self._head, guard, self._tail, format_micro_time(now))


def format_rfc3339(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def format_micro_time(moment: datetime) -> bytes:
    return f"{moment.astimezone(UTC).isoformat(timespec='microseconds').removesuffix('+00:00')}Z".encode()


def parse_time(text: str) -> float:
    """Returns the wall-clock seconds of a timestamp; 0 when it is empty or out of Python's range.

    An API server accepts the year 0; Python's calendar does not have it.
    """
    try:
        return datetime.fromisoformat(text).timestamp() if text else 0.0
    except (ValueError, OverflowError):
        return 0.0
