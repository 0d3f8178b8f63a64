"""Values for tests of the platform driver `hosted`: a wish, its place, and objects as HyperShift would leave them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from boatyard.model import hub_names
from boatyard.platforms.drivers.hosted import cluster_manifests
from boatyard.platforms.drivers.hosted.cluster_manifests import ClusterLocation
from boatyard.platforms.drivers.hosted.settings import resolve_settings, select_hosted_settings
from boatyard.platforms.port import DesiredCluster

CLUSTER_ID = "0b6f2f3e-1c55-4d0f-9a57-6c0e5a7d1c11"
ORDER = hub_names.order_name(CLUSTER_ID)
SETTINGS: Mapping[str, Mapping[str, str]] = {
    "Agent": {"hosted.platform": "Agent", "hosted.agent-namespace": "hosts"},
    "KubeVirt": {
        "hosted.platform": "KubeVirt",
        "hosted.vm.default": "cores=2,memory=8Gi,disk=32Gi",
        "hosted.vm.large": "cores=8,memory=64Gi,disk=120Gi",
    },
    "None": {"hosted.platform": "None"},
}

PLACE = ClusterLocation(
    key=f"{CLUSTER_ID}/cluster",
    cluster_id=CLUSTER_ID,
    order=ORDER,
    order_namespace="boatyard-acme",
    namespace=f"boatyard-acme-{ORDER}",
    hub="hub-1",
    tenant="acme",
)


def image_of(version: str) -> str:
    return f"registry.invalid/release:{version}"


def wish(platform: str = "None", version: str = "4.17.1", **more: Any) -> DesiredCluster:
    values: dict[str, Any] = {
        "name": "one",
        "version": version,
        "release_image": image_of(version),
        "api_name": "api.one.boston.example",
        "api_address": "198.51.100.1",
        "ingress_name": "*.apps.one.boston.example",
        "ingress_address": "198.51.100.2",
        "pod_cidr": "10.128.0.0/14",
        "service_cidr": "172.30.0.0/16",
        "machine_cidr": "10.4.0.0/24",
        "gateway": "10.4.0.1",
        "ssh_public_key": "ssh-ed25519 AAAA",
        "pull_secret": '{"auths":{}}',
        "settings": SETTINGS[platform],
    }
    return DesiredCluster(**{**values, **more})


def cluster(platform: str = "None", wanted: DesiredCluster | None = None) -> dict[str, Any]:
    """A HostedCluster as it is written."""
    wanted = wanted or wish(platform)
    return cluster_manifests.render_hosted_cluster(
        PLACE,
        wanted,
        resolve_settings(select_hosted_settings(wanted.settings), {}),
        image=cluster_manifests.choose_release_image(
            wanted, resolve_settings(select_hosted_settings(wanted.settings), {})
        ),
        pull_secret_name=hub_names.pull_secret_name(ORDER),
        ssh_key_name=hub_names.ssh_key_name(ORDER),
    )


def pool(platform: str = "None", node_set: str = "compute", host_type: str = "") -> dict[str, Any]:
    """A NodePool as it is written."""
    choice = resolve_settings(SETTINGS[platform], {})
    there = cluster(platform)
    return cluster_manifests.render_node_pool(
        PLACE, there, choice, node_set, host_type, image=image_of("4.17.1")
    )


def condition(kind: str, status: str = "True", reason: str = "AsExpected", **more: Any) -> Any:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": "as it is",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
        **more,
    }


ALL_WELL = ("InfrastructureReady", "EtcdAvailable", "KubeAPIServerAvailable", "Available")


def status(
    *conditions: Any, history: Sequence[tuple[str, str]] = (), desired: str = ""
) -> dict[str, Any]:
    """The status of a HostedCluster. `history` is versions and states, newest first."""
    told: dict[str, Any] = {"conditions": list(conditions)}
    if history or desired:
        newest = desired or history[0][0]
        told["version"] = {
            "desired": {"version": newest, "image": image_of(newest)},
            "observedGeneration": 1,
            "availableUpdates": None,
            "history": [
                {
                    "version": version,
                    "image": image_of(version),
                    "state": state,
                    "startedTime": "2026-01-01T00:00:00Z",
                    "completionTime": "2026-01-01T00:10:00Z" if state == "Completed" else None,
                    "verified": False,
                }
                for version, state in history
            ],
        }
    return told


def well(*more: Any, history: Sequence[tuple[str, str]] = (("4.17.1", "Completed"),)) -> Any:
    """The status of a cluster whose API answers."""
    return status(*(condition(kind) for kind in ALL_WELL), *more, history=history)
