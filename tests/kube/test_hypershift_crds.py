"""HyperShift's real CRDs on a real API server: they are what the facts say, and they are served."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from boatyard.kube.client import KubeClient
from boatyard.kube.kinds import KubeKind
from boatyard.model.errors import Refused
from tests.support.control_plane import ControlPlane
from tests.support.kube_hub.hypershift_crds import USUAL, install_crds, read_crds

HOSTED_CLUSTERS = KubeKind(
    "hypershift.openshift.io", "v1beta1", "hostedclusters", "HostedCluster", True
)
SERVICES = ("APIServer", "OAuthServer", "Konnectivity", "Ignition")


def minimal(name: str) -> dict[str, Any]:
    published = {"type": "LoadBalancer"}
    return {
        "metadata": {"name": name},
        "spec": {
            "release": {"image": "registry.invalid/release:4.17.1"},
            "pullSecret": {"name": "pull"},
            "platform": {"type": "None"},
            "services": [
                {"service": service, "servicePublishingStrategy": published} for service in SERVICES
            ],
        },
    }


def test_a_test_may_change_its_copy_of_a_crd() -> None:
    (first,) = read_crds(USUAL[0])
    before = copy.deepcopy(first)
    first["spec"]["versions"].clear()
    assert read_crds(USUAL[0]) == (before,)


def test_all_are_served_and_installing_again_changes_nothing(plane: ControlPlane) -> None:
    crds = read_crds()
    assert [crd["metadata"]["name"] for crd in crds] == list(USUAL)
    install_crds(plane.kubeconfig(), crds)
    install_crds(plane.kubeconfig(), crds)


async def test_the_real_rules_are_in_force(
    plane: ControlPlane, client: KubeClient, namespace: str
) -> None:
    install_crds(plane.kubeconfig(), read_crds())
    await client.create(HOSTED_CLUSTERS, minimal("good"), namespace)
    three = minimal("three")
    three["spec"]["services"].pop()
    with pytest.raises(Refused, match="should have at least 4 items"):
        await client.create(HOSTED_CLUSTERS, three, namespace)
