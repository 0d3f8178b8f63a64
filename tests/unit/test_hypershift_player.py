"""The player's decisions on stepped time: a HostedCluster's way up and its way out."""

from __future__ import annotations

from boatyard.fakes.hypershift.writes import CreateObject, DeleteObject, UpdateStatus, target_of
from tests.support.kube_hub.hypershift_manifests import hosted_cluster, node_pool
from tests.support.kube_hub.memory_api import MemoryApi
from tests.support.kube_hub.memory_clusters import (
    INSTANT,
    KUBEVIRT,
    REALISTIC,
    VMS,
    complete,
    one_cluster,
    ready,
    reason,
    said,
)

# --- the way up -------------------------------------------------------------------------------


def test_conditions_become_true_in_hypershifts_order() -> None:
    held, order = one_cluster(REALISTIC), list[str]()

    def told() -> bool:
        for kind, status in said(held.get("HostedCluster", "c")).items():
            if status == "True" and kind not in order:
                order.append(kind)
        return complete(held)

    held.until(told)

    wanted = [
        "ValidConfiguration",
        "InfrastructureReady",
        "EtcdAvailable",
        "KubeAPIServerAvailable",
        "IgnitionEndpointAvailable",
        "Available",
        "ClusterVersionAvailable",
    ]
    assert [kind for kind in order if kind in wanted] == wanted


def test_a_realistic_pace_keeps_hypershifts_own_goals() -> None:
    held = one_cluster(REALISTIC)

    to_available = held.until(
        lambda: said(held.get("HostedCluster", "c")).get("Available") == "True"
    )
    to_nodes = held.until(lambda: ready(held))
    to_complete = held.until(lambda: complete(held))

    assert 120 < to_available < 300
    assert 120 < to_nodes < 480
    assert 180 < to_complete < 900


def test_at_an_instant_pace_nothing_takes_time() -> None:
    held = one_cluster()

    assert held.until(lambda: ready(held) and complete(held)) == 0


def test_nothing_is_written_twice() -> None:
    held = one_cluster()
    held.settle()
    written = len(held.written)

    held.settle()

    assert len(held.written) == written
    assert held.conflicts == 0


def test_a_condition_that_stays_keeps_its_moment() -> None:
    held = one_cluster(REALISTIC)
    held.until(lambda: said(held.get("HostedCluster", "c")).get("EtcdAvailable") == "True")
    first = since(held, "EtcdAvailable")

    held.until(lambda: complete(held))

    assert since(held, "EtcdAvailable") == first
    assert since(held, "Available") > first


def since(held: MemoryApi, kind: str) -> str:
    cluster = held.get("HostedCluster", "c")
    assert cluster is not None
    conditions = cluster["status"]["conditions"]
    return next(str(one["lastTransitionTime"]) for one in conditions if one["type"] == kind)


def test_status_tells_where_things_are() -> None:
    held = one_cluster()
    held.settle()
    cluster = held.get("HostedCluster", "c")

    assert cluster is not None
    status = cluster["status"]
    assert status["kubeconfig"] == {"name": "c-admin-kubeconfig"}
    assert status["kubeadminPassword"] == {"name": "c-kubeadmin-password"}
    assert status["controlPlaneEndpoint"]["port"] == 6443
    assert status["ignitionEndpoint"].endswith(".example")
    assert status["version"]["desired"]["version"] == "4.18.2"
    assert status["version"]["availableUpdates"] is None
    assert cluster["spec"]["infraID"].startswith("c-")
    assert held.get("Namespace", "t-c") is not None
    assert held.get("Secret", "c-admin-kubeconfig") is not None


def test_a_cluster_with_identity_providers_has_no_kubeadmin() -> None:
    oauth = {"oauth": {"identityProviders": [{"name": "ours"}]}}
    held = MemoryApi(INSTANT, hosted_cluster("t", "c", configuration=oauth))
    held.settle()

    cluster = held.get("HostedCluster", "c")
    assert cluster is not None
    assert "kubeadminPassword" not in cluster["status"]
    assert held.get("Secret", "c-kubeadmin-password") is None


def test_a_published_secret_that_is_deleted_comes_back() -> None:
    held = one_cluster()
    held.settle()
    held.delete("Secret", "c-admin-kubeconfig")

    held.settle()

    assert held.get("Secret", "c-admin-kubeconfig") is not None


def test_without_a_worker_the_first_rollout_does_not_complete() -> None:
    held = one_cluster(replicas=0)
    held.rest()

    cluster = held.get("HostedCluster", "c")
    assert said(cluster)["Available"] == "True"
    assert said(cluster)["ClusterVersionSucceeding"] == "False"
    assert said(cluster)["Progressing"] == "True"


def test_on_platform_none_nodes_are_nobodys_business() -> None:
    held = MemoryApi(
        INSTANT,
        hosted_cluster("t", "c", platform={"type": "None"}),
        node_pool("t", "p", "c", 0, platform={"type": "None"}),
    )
    held.settle()

    pool = held.get("NodePool", "p")
    assert complete(held)
    assert pool is not None
    assert pool["status"]["version"] == "4.18.2"
    assert "Ready" not in said(pool)
    assert held.all("Machine") == []


def test_vms_become_nodes_without_agents() -> None:
    held = MemoryApi(
        REALISTIC,
        hosted_cluster("t", "c", platform=KUBEVIRT),
        node_pool("t", "p", "c", 3, platform=VMS),
    )
    held.until(lambda: ready(held))

    machines = held.all("Machine")
    assert [one["status"]["phase"] for one in machines] == ["Running"] * 3
    assert all(one["spec"]["providerID"].startswith("kubevirt://") for one in machines)


# --- the way out ------------------------------------------------------------------------------


def test_a_cluster_goes_in_order_and_leaves_nothing() -> None:
    held = one_cluster(REALISTIC)
    held.until(lambda: ready(held))
    begun = len(held.written)
    held.delete("HostedCluster", "c")

    took = held.until(lambda: held.get("HostedCluster", "c") is None)

    assert 30 < took < 300
    assert {kind for kind, _, _ in held.held} == {"Agent"}
    removed = [
        target_of(one)[0].name for one in held.written[begun:] if isinstance(one, DeleteObject)
    ]
    assert list(dict.fromkeys(removed)) == ["NodePool", "Machine", "Namespace", "Secret"]
    states = {one["status"]["debugInfo"]["state"] for one in held.all("Agent")}
    assert states == {"known-unbound"}


def test_a_cluster_can_be_deleted_before_it_is_there() -> None:
    held = one_cluster(REALISTIC)
    held.settle()
    held.delete("HostedCluster", "c")

    held.until(lambda: held.get("HostedCluster", "c") is None)

    assert {kind for kind, _, _ in held.held} == {"Agent"}


def test_a_cluster_that_goes_makes_no_more_machines() -> None:
    held = one_cluster()
    held.edit("NodePool", "p", {"spec": {"replicas": 0}})
    held.settle()
    begun = len(held.written)
    held.edit("NodePool", "p", {"spec": {"replicas": 2}})
    held.delete("HostedCluster", "c")

    held.settle()

    assert not any(isinstance(one, CreateObject) for one in held.written[begun:])
    assert held.get("HostedCluster", "c") is None


def test_machines_whose_pool_was_torn_away_go_with_the_cluster() -> None:
    held = one_cluster()
    held.settle()
    held.edit("NodePool", "p", {"metadata": {"finalizers": None}})
    held.delete("NodePool", "p")
    held.settle()
    assert len(held.all("Machine")) == 2

    held.delete("HostedCluster", "c")
    held.settle()

    assert {kind for kind, _, _ in held.held} == {"Agent"}
    states = {one["status"]["debugInfo"]["state"] for one in held.all("Agent")}
    assert states == {"known-unbound"}


def test_a_pool_can_go_alone() -> None:
    held = one_cluster()
    held.settle()
    held.delete("NodePool", "p")

    held.settle()

    assert held.all("Machine") == []
    assert said(held.get("HostedCluster", "c"))["Available"] == "True"


def test_a_pool_without_a_cluster_is_left_alone_and_can_go() -> None:
    held = MemoryApi(INSTANT, node_pool("t", "p", "nobody", 2))
    held.settle()
    assert held.written == []

    held.delete("NodePool", "p")

    assert held.all("NodePool") == []


def test_a_cluster_waits_for_the_namespace_of_the_one_before() -> None:
    held = one_cluster()
    old = held.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "t-c"}})
    old["metadata"]["deletionTimestamp"] = "2027-01-15T08:00:00Z"
    held.put({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "t-c"}})
    held.settle()
    assert said(held.get("HostedCluster", "c"))["Available"] == "False"

    held.delete("Secret", "s", "t-c")
    held.settle()

    assert ready(held)


# --- pausing ----------------------------------------------------------------------------------


def test_a_paused_cluster_stays_as_it_is() -> None:
    held = one_cluster()
    held.settle()
    held.edit("HostedCluster", "c", {"spec": {"pausedUntil": "true"}})
    held.edit("NodePool", "p", {"spec": {"replicas": 3}})
    held.settle()
    cluster = held.get("HostedCluster", "c")
    assert reason(cluster, "ReconciliationActive") == "ReconciliationPaused"
    assert reason(cluster, "Progressing") == "Blocked"
    assert len(held.all("Machine")) == 2

    held.edit("HostedCluster", "c", {"spec": {"pausedUntil": None}})
    held.settle()

    assert len(held.all("Machine")) == 3


def test_a_pause_with_an_end_ends() -> None:
    held = one_cluster()
    held.edit("HostedCluster", "c", {"spec": {"pausedUntil": "2027-01-15T09:00:00Z"}})

    assert held.until(lambda: ready(held)) == 3600


def test_statuses_are_reported_by_whole_and_secrets_by_name() -> None:
    held = one_cluster()
    held.settle()

    reports = [one for one in held.written if isinstance(one, UpdateStatus)]
    made = [one.body["metadata"]["name"] for one in held.written if isinstance(one, CreateObject)]
    assert all("conditions" in one.status for one in reports)
    assert len(made) == len(set(made))
