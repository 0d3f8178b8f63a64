"""The player of HyperShift on a real API server with HyperShift's real CRDs, seen through the real kubectl."""

from __future__ import annotations

import json
from base64 import b64decode
from typing import Any

import pytest

from tests.support.kube_hub.fake_hypershift import condition, conditions, eventually
from tests.support.kube_hub.hypershift_manifests import RELEASE, namespace, pull_secret
from tests.support.kube_hub.hypershift_tenant import KUBEVIRT, VMS, HyperShiftTenant, is_ready

Object = dict[str, Any]

# --- the way up -------------------------------------------------------------------------------


def test_a_cluster_comes_up_as_hypershift_makes_it(tenant: HyperShiftTenant) -> None:
    tenant.order()
    tenant.until_ready()
    tenant.wait("hostedcluster:ClusterVersionAvailable", "c")

    cluster, kubectl = tenant.cluster(), tenant.kubectl
    status = cluster["status"]
    assert cluster["metadata"]["finalizers"] == ["hypershift.openshift.io/finalizer"]
    assert cluster["spec"]["clusterID"] == cluster["metadata"]["uid"]
    assert status["version"]["history"][0]["state"] == "Completed"
    assert status["version"]["availableUpdates"] is None
    secret = kubectl.get("secret", status["kubeconfig"]["name"], tenant.name)
    assert secret is not None
    kubeconfig = json.loads(b64decode(secret["data"]["kubeconfig"]))
    endpoint = status["controlPlaneEndpoint"]
    server = kubeconfig["clusters"][0]["cluster"]["server"]
    assert server == f"https://{endpoint['host']}:{endpoint['port']}"
    password = kubectl.get("secret", status["kubeadminPassword"]["name"], tenant.name)
    assert password is not None
    assert len(b64decode(password["data"]["password"])) > 10
    assert kubectl.get("namespace", f"{tenant.name}-c") is not None
    nodes = {one["status"]["nodeRef"]["name"] for one in tenant.machines()}
    assert nodes == {"host-a0", "host-a1"}
    assert sorted(tenant.agents().values()) == [
        *["added-to-existing-cluster"] * 2,
        *["known-unbound"] * 2,
    ]


def test_the_supported_versions_are_published_and_what_they_say_counts(
    tenant: HyperShiftTenant,
) -> None:
    kubectl = tenant.kubectl
    found = kubectl.get("configmap", "supported-versions", "hypershift")
    assert found is not None
    assert "4.18" in json.loads(found["data"]["supported-versions"])["versions"]

    kubectl.delete("configmap", "supported-versions", "hypershift", wait=True)

    eventually(lambda: kubectl.get("configmap", "supported-versions", "hypershift"))
    only = {"data": {"supported-versions": json.dumps({"versions": ["4.17"]})}}
    kubectl.patch("configmap", "supported-versions", "hypershift", only)
    tenant.order()
    tenant.wait("hostedcluster:ValidReleaseImage=false", "c")
    assert "supported are 4.17" in condition(tenant.cluster(), "ValidReleaseImage")["message"]
    kubectl.delete("configmap", "supported-versions", "hypershift")
    tenant.wait("hostedcluster:Available", "c")


def test_vms_and_machines_brought_by_people(tenant: HyperShiftTenant) -> None:
    tenant.order("v", platform=KUBEVIRT, pool_platform=VMS)
    tenant.order("n", replicas=0, platform={"type": "None"}, pool_platform={"type": "None"})

    tenant.until_ready("v")
    tenant.wait("hostedcluster:ClusterVersionAvailable", "n")

    providers = [one["spec"]["providerID"] for one in tenant.machines("v")]
    assert all(provider.startswith("kubevirt://") for provider in providers)
    assert tenant.machines("n") == []
    assert tenant.pool("n")["status"]["version"] == "4.18.2"


def test_a_pull_secret_may_come_later(tenant: HyperShiftTenant) -> None:
    tenant.order(pullSecret={"name": "late"})
    tenant.wait("hostedcluster:ValidReleaseImage=false", "c")
    assert condition(tenant.cluster(), "ValidReleaseImage")["reason"] == "SecretNotFound"

    tenant.kubectl.apply(pull_secret(tenant.name, "late"))

    tenant.wait("hostedcluster:Available", "c")


def test_a_control_planes_namespace_may_be_there_before(tenant: HyperShiftTenant) -> None:
    home = f"{tenant.name}-c"
    tenant.kubectl.apply(namespace(home))
    tenant.order()
    tenant.until_ready()
    tenant.kubectl.delete("hostedcluster", "c", tenant.name, wait=True)

    assert tenant.kubectl.get("namespace", home) is None


def test_two_clusters_side_by_side_share_no_host(tenant: HyperShiftTenant) -> None:
    tenant.order("c", 2)
    tenant.order("d", 2)
    tenant.until_ready("c")
    tenant.until_ready("d")

    hosts = [
        machine["spec"]["providerID"] for name in ("c", "d") for machine in tenant.machines(name)
    ]
    assert len(hosts) == len(set(hosts)) == 4


# --- scaling, versions ------------------------------------------------------------------------


def test_the_named_machine_leaves_and_its_host_is_free_again(tenant: HyperShiftTenant) -> None:
    tenant.order(replicas=1)
    tenant.until_ready()
    tenant.scale(3)
    tenant.until_ready()
    oldest = next(one for one in tenant.machines() if one["spec"]["providerID"] == "agent://a0")
    name = oldest["metadata"]["name"]
    tenant.kubectl.annotate(
        "machine", name, f"{tenant.name}-c", "cluster.x-k8s.io/delete-machine=yes"
    )

    tenant.scale(2)
    tenant.until_ready()

    eventually(lambda: len(tenant.machines()) == 2)
    assert name not in {one["metadata"]["name"] for one in tenant.machines()}
    eventually(lambda: tenant.agents()["a0"] == "known-unbound")
    freed = tenant.kubectl.get("agent", "a0", tenant.hosts)
    assert freed is not None
    assert "clusterDeploymentName" not in freed["spec"]
    assert "agentMachineRef" not in freed["metadata"]["labels"]


def test_the_control_plane_is_updated_before_its_nodes(tenant: HyperShiftTenant) -> None:
    tenant.order()
    tenant.until_ready()
    tenant.wait("hostedcluster:ClusterVersionAvailable", "c")
    newer = {"spec": {"release": {"image": f"{RELEASE}:4.19.3-multi"}}}
    tenant.kubectl.patch("nodepool", "c-p", tenant.name, newer)
    eventually(lambda: conditions(tenant.pool()).get("ValidReleaseImage") == "False")
    assert (
        "newer than the control plane" in condition(tenant.pool(), "ValidReleaseImage")["message"]
    )
    assert {one["spec"]["version"] for one in tenant.machines()} == {"4.18.2"}

    tenant.kubectl.patch("hostedcluster", "c", tenant.name, newer)

    eventually(lambda: tenant.pool()["status"].get("version") == "4.19.3")
    history = tenant.cluster()["status"]["version"]["history"]
    assert [(one["version"], one["state"]) for one in history] == [
        ("4.19.3", "Completed"),
        ("4.18.2", "Completed"),
    ]
    assert {one["spec"]["version"] for one in tenant.machines()} == {"4.19.3"}
    assert is_ready(tenant.pool())


@pytest.mark.parametrize(
    "spec, field",
    [
        pytest.param({"platform": {"type": "Agent"}}, "agentNamespace", id="no agents"),
        pytest.param({"platform": {"type": "KubeVirt"}}, "kubevirt", id="no VMs"),
        pytest.param(
            {
                "networking": {
                    "clusterNetwork": [{"cidr": "10.0.0.0/8"}],
                    "serviceNetwork": [{"cidr": "10.1.0.0/16"}],
                }
            },
            "overlaps",
            id="networks overlap",
        ),
        pytest.param({"secretEncryption": {"type": "aescbc"}}, "secretEncryption", id="no key"),
        pytest.param({"sshKey": {"name": "none"}}, "spec.sshKey", id="no ssh key"),
    ],
)
def test_what_the_real_crd_accepts_and_hypershift_does_not(
    tenant: HyperShiftTenant, spec: Object, field: str
) -> None:
    tenant.order(**spec)

    tenant.wait("hostedcluster:ValidConfiguration=false", "c")

    cluster = tenant.cluster()
    assert field in condition(cluster, "ValidConfiguration")["message"]
    assert condition(cluster, "Progressing")["reason"] == "Blocked"
    assert tenant.kubectl.get("namespace", f"{tenant.name}-c") is None


# --- the way out ------------------------------------------------------------------------------


def test_deletion_leaves_nothing(tenant: HyperShiftTenant) -> None:
    tenant.order()
    tenant.until_ready()

    tenant.kubectl.delete("hostedcluster", "c", tenant.name, wait=True)

    kubectl = tenant.kubectl
    assert kubectl.list("nodepools", tenant.name) == []
    assert tenant.machines() == []
    assert kubectl.get("namespace", f"{tenant.name}-c") is None
    secrets = [one["metadata"]["name"] for one in kubectl.list("secrets", tenant.name)]
    assert secrets == ["pull"]
    eventually(lambda: set(tenant.agents().values()) == {"known-unbound"})
    assert not any(
        "clusterDeploymentName" in one["spec"] for one in kubectl.list("agents", tenant.hosts)
    )


def test_a_name_can_be_used_again(tenant: HyperShiftTenant) -> None:
    tenant.order()
    tenant.until_ready()
    first = tenant.cluster()["metadata"]["uid"]
    tenant.kubectl.delete("hostedcluster", "c", tenant.name, wait=True)

    tenant.order()
    tenant.until_ready()

    assert tenant.cluster()["metadata"]["uid"] != first
