"""What people run on simulated nodes, seen through the real kubectl."""

from __future__ import annotations

import json

from tests.support.node_field import Field, deployment


async def test_three_nodes_are_ready_as_soon_as_they_have_booted(field: Field) -> None:
    field.twin.set_boot(1.0)
    names = field.add(3)
    field.start()

    seconds = await field.until_ready()

    assert 0.5 < seconds < 10.0, "a second of booting, and little more where nobody else is busy"
    said = await field.kubectl("get", "nodes", "--no-headers", *names)
    for line in said.splitlines():
        assert line.split()[1] == "Ready", said
        assert line.split()[-1] == "v1.36.3"


async def test_a_deployment_rolls_out_and_its_service_has_endpoints(field: Field) -> None:
    field.add(3)
    field.start()
    await field.until_ready()
    await field.apply(deployment("web", 30))
    await field.kubectl("expose", "deployment/web", "--port=80")
    await field.kubectl("rollout", "status", "deployment/web", "--timeout=60s")

    async def has_endpoints() -> bool:
        slices = json.loads(await field.kubectl("get", "endpointslices", "-o", "json"))
        ready = [
            address
            for item in slices["items"]
            for endpoint in item["endpoints"] or ()
            if endpoint["conditions"]["ready"]
            for address in endpoint["addresses"]
        ]
        return len(set(ready)) == 30

    await field.until(has_endpoints, "thirty endpoints")
    pods = await field.pods()
    assert len({pod["status"]["podIP"] for pod in pods}) == 30
    for pod in pods:
        prefix = field.specs[pod["spec"]["nodeName"]].pod_cidr.removesuffix("0/24")
        assert pod["status"]["podIP"].startswith(prefix)

    await field.kubectl("rollout", "restart", "deployment/web")
    await field.kubectl("rollout", "status", "deployment/web", "--timeout=60s")

    async def old_ones_are_gone() -> bool:
        return len(await field.pods()) == 30

    await field.until(old_ones_are_gone, "thirty pods and no more")


async def test_cordon_and_drain_with_kubectl(field: Field) -> None:
    first, second = field.add(2)
    field.start()
    await field.until_ready()
    await field.apply(deployment("web", 6))
    await field.kubectl("rollout", "status", "deployment/web", "--timeout=60s")

    await field.kubectl("drain", first, "--ignore-daemonsets", "--timeout=30s")
    await field.kubectl("rollout", "status", "deployment/web", "--timeout=60s")

    assert {pod["spec"]["nodeName"] for pod in await field.pods()} == {second}
    await field.kubectl("uncordon", first)
    assert field.state(first).ready


async def test_a_job_completes_and_one_that_fails_does_not(field: Field) -> None:
    field.add(1)
    field.start()
    await field.until_ready()
    pod = {"restartPolicy": "Never", "containers": [{"name": "work", "image": "work:1"}]}
    good = {"spec": pod}
    bad = {"metadata": {"annotations": {"boatyard.io/pod-fails": "true"}}, "spec": pod}
    await field.apply(
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

    await field.kubectl("wait", "job/good", "--for=condition=complete", "--timeout=30s")
    await field.kubectl("wait", "job/bad", "--for=condition=failed", "--timeout=30s")


async def test_a_daemon_set_has_one_pod_on_every_node_also_on_one_that_comes_later(
    field: Field,
) -> None:
    field.add(2)
    field.start()
    await field.until_ready()
    template = deployment("agent", 1)["spec"]["template"]
    await field.apply(
        {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": {"name": "agent"},
            "spec": {"selector": {"matchLabels": {"app": "agent"}}, "template": template},
        }
    )
    field.add(1)
    await field.until_ready()

    async def one_each() -> bool:
        running = [pod for pod in await field.pods() if pod["status"]["phase"] == "Running"]
        return sorted(pod["spec"]["nodeName"] for pod in running) == sorted(field.specs)

    await field.until(one_each, "a pod on each of three nodes")


async def test_a_pod_told_to_fail_is_never_ready_until_told_otherwise(field: Field) -> None:
    field.add(1)
    field.start()
    await field.until_ready()
    await field.kubectl("run", "p", "--image=web:1", "--annotations=boatyard.io/pod-fails=true")

    async def crashes() -> bool:
        return "CrashLoopBackOff" in await field.kubectl("get", "pod", "p", "--no-headers")

    await field.until(crashes, "a crash loop")
    await field.kubectl("annotate", "pod", "p", "boatyard.io/pod-fails-")
    await field.kubectl("wait", "pod/p", "--for=condition=Ready", "--timeout=30s")


async def test_logs_are_refused_clearly_and_at_once(field: Field) -> None:
    field.add(1)
    field.start()
    await field.until_ready()
    await field.kubectl("run", "p", "--image=web:1")
    await field.kubectl("wait", "pod/p", "--for=condition=Ready", "--timeout=30s")

    said = await field.kubectl("logs", "p", "--request-timeout=5s", fails=True)

    assert "no preferred addresses found" in said
