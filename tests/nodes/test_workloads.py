"""What people run on simulated nodes, seen through the real kubectl."""

from __future__ import annotations

import json

from tests.support.real_clusters.simulated_nodes import NodeEnvironment, deployment


async def test_three_nodes_are_ready_as_soon_as_they_have_booted(
    node_environment: NodeEnvironment,
) -> None:
    node_environment.twin.set_boot(1.0)
    names = node_environment.add(3)
    node_environment.start()

    seconds = await node_environment.until_ready()

    assert 0.5 < seconds < 10.0, "a second of booting, and little more where nobody else is busy"
    said = await node_environment.kubectl("get", "nodes", "--no-headers", *names)
    for line in said.splitlines():
        assert line.split()[1] == "Ready", said
        assert line.split()[-1] == "v1.36.3"


async def test_a_deployment_rolls_out_and_its_service_has_endpoints(
    node_environment: NodeEnvironment,
) -> None:
    node_environment.add(3)
    node_environment.start()
    await node_environment.until_ready()
    await node_environment.apply(deployment("web", 30))
    await node_environment.kubectl("expose", "deployment/web", "--port=80")
    await node_environment.kubectl("rollout", "status", "deployment/web", "--timeout=60s")

    async def has_endpoints() -> bool:
        slices = json.loads(await node_environment.kubectl("get", "endpointslices", "-o", "json"))
        ready = [
            address
            for item in slices["items"]
            for endpoint in item["endpoints"] or ()
            if endpoint["conditions"]["ready"]
            for address in endpoint["addresses"]
        ]
        return len(set(ready)) == 30

    await node_environment.until(has_endpoints, "thirty endpoints")
    pods = await node_environment.pods()
    assert len({pod["status"]["podIP"] for pod in pods}) == 30
    for pod in pods:
        prefix = node_environment.specs[pod["spec"]["nodeName"]].pod_cidr.removesuffix("0/24")
        assert pod["status"]["podIP"].startswith(prefix)

    await node_environment.kubectl("rollout", "restart", "deployment/web")
    await node_environment.kubectl("rollout", "status", "deployment/web", "--timeout=60s")

    async def old_ones_are_gone() -> bool:
        return len(await node_environment.pods()) == 30

    await node_environment.until(old_ones_are_gone, "thirty pods and no more")


async def test_cordon_and_drain_with_kubectl(node_environment: NodeEnvironment) -> None:
    first, second = node_environment.add(2)
    node_environment.start()
    await node_environment.until_ready()
    await node_environment.apply(deployment("web", 6))
    await node_environment.kubectl("rollout", "status", "deployment/web", "--timeout=60s")

    await node_environment.kubectl("drain", first, "--ignore-daemonsets", "--timeout=30s")
    await node_environment.kubectl("rollout", "status", "deployment/web", "--timeout=60s")

    assert {pod["spec"]["nodeName"] for pod in await node_environment.pods()} == {second}
    await node_environment.kubectl("uncordon", first)
    assert node_environment.state(first).ready


async def test_a_job_completes_and_one_that_fails_does_not(
    node_environment: NodeEnvironment,
) -> None:
    node_environment.add(1)
    node_environment.start()
    await node_environment.until_ready()
    pod = {"restartPolicy": "Never", "containers": [{"name": "work", "image": "work:1"}]}
    good = {"spec": pod}
    bad = {"metadata": {"annotations": {"boatyard.io/pod-fails": "true"}}, "spec": pod}
    await node_environment.apply(
        *(
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": {"name": name},
                "spec": {
                    "template": template,
                    "completions": 3,
                    "parallelism": 3,
                    "backoffLimit": 0,
                },
            }
            for name, template in (("good", good), ("bad", bad))
        )
    )

    await node_environment.kubectl("wait", "job/good", "--for=condition=complete", "--timeout=30s")
    await node_environment.kubectl("wait", "job/bad", "--for=condition=failed", "--timeout=30s")


async def test_a_daemon_set_has_one_pod_on_every_node_also_on_one_that_comes_later(
    node_environment: NodeEnvironment,
) -> None:
    node_environment.add(2)
    node_environment.start()
    await node_environment.until_ready()
    template = deployment("agent", 1)["spec"]["template"]
    await node_environment.apply(
        {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": {"name": "agent"},
            "spec": {"selector": {"matchLabels": {"app": "agent"}}, "template": template},
        }
    )
    node_environment.add(1)
    await node_environment.until_ready()

    async def one_each() -> bool:
        running = [
            pod for pod in await node_environment.pods() if pod["status"]["phase"] == "Running"
        ]
        return sorted(pod["spec"]["nodeName"] for pod in running) == sorted(node_environment.specs)

    await node_environment.until(one_each, "a pod on each of three nodes")


async def test_a_pod_told_to_fail_is_never_ready_until_told_otherwise(
    node_environment: NodeEnvironment,
) -> None:
    node_environment.add(1)
    node_environment.start()
    await node_environment.until_ready()
    await node_environment.kubectl(
        "run", "p", "--image=web:1", "--annotations=boatyard.io/pod-fails=true"
    )

    async def crashes() -> bool:
        return "CrashLoopBackOff" in await node_environment.kubectl(
            "get", "pod", "p", "--no-headers"
        )

    await node_environment.until(crashes, "a crash loop")
    await node_environment.kubectl("annotate", "pod", "p", "boatyard.io/pod-fails-")
    await node_environment.kubectl("wait", "pod/p", "--for=condition=Ready", "--timeout=30s")


async def test_logs_are_refused_clearly_and_at_once(node_environment: NodeEnvironment) -> None:
    node_environment.add(1)
    node_environment.start()
    await node_environment.until_ready()
    await node_environment.kubectl("run", "p", "--image=web:1")
    await node_environment.kubectl("wait", "pod/p", "--for=condition=Ready", "--timeout=30s")

    said = await node_environment.kubectl("logs", "p", "--request-timeout=5s", fails=True)

    assert "no preferred addresses found" in said
