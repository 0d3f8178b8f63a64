"""The fields of one simulated control plane, and its state at a given time. Pure."""

from __future__ import annotations

from typing import NamedTuple

from boatyard.twin.hub import Thing
from boatyard.twin.services.verb_context import VerbContext

STAGE_MESSAGES = (
    "The control plane is being created.",
    "The API server is starting.",
    "The cluster's operators are settling.",
)
_OPERATION_MESSAGES = {
    "upgrade": "The cluster is moving to its new version.",
    "restore": "The cluster's objects are being restored.",
    "rest": "The cluster is going to rest.",
    "resume": "The cluster is waking up.",
}
_UNAVAILABLE_OPERATIONS = ("restore", "resume")


class ClusterFields(NamedTuple):
    """What `extra` holds for a cluster."""

    version: str  # empty until the first install is finished
    target: str
    api_name: str
    api_address: str
    ingress_name: str
    ingress_address: str
    rest: str = ""  # empty, frozen or stopped
    doing: str = ""  # the last change: upgrade, restore, rest or resume
    contents: str = ""  # stands for all objects in it
    restored: str = ""  # the request of the last restore
    # Other requested fields. Nothing here depends on them; they are stored to be compared.
    release_image: str = ""
    pod_cidr: str = ""
    service_cidr: str = ""
    machine_cidr: str = ""
    gateway: str = ""
    ssh_public_key: str = ""
    pull_secret: str = ""  # a digest: the journal is on disk
    parameters: str = ""  # JSON, name to the digest of a value
    settings: str = ""  # JSON
    host_types: str = ""  # JSON


def is_available(context: VerbContext, cluster: Thing) -> bool:
    """A cluster that has been installed once stays available while it is upgraded."""
    fields = ClusterFields(*cluster.extra)
    if fields.rest:
        return False
    return cluster.ready_at <= context.now or bool(
        fields.version and fields.doing not in _UNAVAILABLE_OPERATIONS
    )


def current_version(context: VerbContext, cluster: Thing) -> str:
    fields = ClusterFields(*cluster.extra)
    return fields.target if cluster.ready_at <= context.now else fields.version


def describe_stage(context: VerbContext, cluster: Thing) -> str:
    """The stage of an install or change, as a sentence that stays the same for a while."""
    fields = ClusterFields(*cluster.extra)
    if fields.version:
        return _OPERATION_MESSAGES.get(fields.doing, _OPERATION_MESSAGES["upgrade"])
    total = cluster.ready_at - cluster.made_at
    fraction = (context.now - cluster.made_at) / total if total > 0 else 1.0
    return STAGE_MESSAGES[min(int(fraction * len(STAGE_MESSAGES)), len(STAGE_MESSAGES) - 1)]
