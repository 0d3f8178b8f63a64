"""HyperShift's objects as a person would write them. For tests of the player, with and without an API server."""

from __future__ import annotations

import json
from typing import Any

Object = dict[str, Any]

RELEASE = "registry.example/release"


def hosted_cluster(namespace: str, name: str, **spec: Any) -> Object:
    published = [
        {"service": service, "servicePublishingStrategy": {"type": "Route"}}
        for service in ("OAuthServer", "Konnectivity", "Ignition")
    ]
    api = {"service": "APIServer", "servicePublishingStrategy": {"type": "LoadBalancer"}}
    return {
        "apiVersion": "hypershift.openshift.io/v1beta1",
        "kind": "HostedCluster",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "release": {"image": f"{RELEASE}:4.18.2-multi"},
            "pullSecret": {"name": "pull"},
            "platform": {"type": "Agent", "agent": {"agentNamespace": "hosts"}},
            "services": [api, *published],
            **spec,
        },
    }


def node_pool(namespace: str, name: str, cluster: str, replicas: int, **spec: Any) -> Object:
    return {
        "apiVersion": "hypershift.openshift.io/v1beta1",
        "kind": "NodePool",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "clusterName": cluster,
            "replicas": replicas,
            "release": {"image": f"{RELEASE}:4.18.2-multi"},
            "management": {"upgradeType": "InPlace"},
            "platform": {
                "type": "Agent",
                "agent": {"agentLabelSelector": {"matchLabels": {"size": "small"}}},
            },
            **spec,
        },
    }


def agent(name: str, *, size: str = "small", namespace: str = "hosts", **spec: Any) -> Object:
    return {
        "apiVersion": "agent-install.openshift.io/v1beta1",
        "kind": "Agent",
        "metadata": {"name": name, "namespace": namespace, "labels": {"size": size}},
        "spec": {"approved": True, "role": "worker", "hostname": f"host-{name}", **spec},
    }


def namespace(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def pull_secret(where: str, name: str = "pull") -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/dockerconfigjson",
        "metadata": {"name": name, "namespace": where},
        "stringData": {".dockerconfigjson": json.dumps({"auths": {}})},
    }
