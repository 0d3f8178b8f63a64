"""An API server that goes away, stands still or forgets, and an agent that is killed: the nodes outlast it."""

from __future__ import annotations

import asyncio
import shutil
import signal
import sys
from pathlib import Path

import msgspec

from boatyard.kube.kinds import NODES, PODS, SERVICE_ACCOUNTS
from tests.support.real_clusters.simulated_nodes import NodeEnvironment, deployment

ROOT = Path(__file__).parents[2]


async def test_an_api_server_that_is_killed_and_comes_back_has_its_nodes(
    bare_node_environment: NodeEnvironment,
) -> None:
    node_environment = bare_node_environment
    first, second = node_environment.add(2)
    node_environment.start()
    await node_environment.until_ready()

    node_environment.plane.stop("kube-apiserver")
    node_environment.twin.do("twin.node_not_ready", host=node_environment.host_of(second))
    await asyncio.sleep(3)  # several heartbeats fail meanwhile
    node_environment.plane.start_api()

    await node_environment.until_it_beats(first)
    assert await node_environment.condition(first) == "True"

    async def says_so() -> bool:
        return await node_environment.condition(second) == "False"

    await node_environment.until(says_so, "what happened to its machine meanwhile")


async def test_an_api_server_that_stands_still_is_waited_for(
    bare_node_environment: NodeEnvironment,
) -> None:
    node_environment = bare_node_environment
    (name,) = node_environment.add(1)
    node_environment.start()
    await node_environment.until_ready()

    node_environment.plane.signal("kube-apiserver", signal.SIGSTOP)
    await asyncio.sleep(7)  # longer than the client waits for an answer
    node_environment.plane.signal("kube-apiserver", signal.SIGCONT)

    await node_environment.until_it_beats(name)
    assert node_environment.state(name).ready


async def test_a_cluster_restored_from_a_backup_gets_its_nodes_anew(
    bare_node_environment: NodeEnvironment,
) -> None:
    """The backup knows the first node, not the second, and a third that is nobody's."""
    node_environment, plane = bare_node_environment, bare_node_environment.plane
    (first,) = node_environment.add(1)
    node_environment.start()
    await node_environment.until_ready()
    await node_environment.client.create(NODES, {"metadata": {"name": "foreign"}})
    uid = (await node_environment.node(first))["metadata"]["uid"]
    for program in ("kube-apiserver", "etcd"):
        plane.stop(program)
    await asyncio.to_thread(shutil.copytree, plane.folder / "etcd", plane.folder / "backup")
    plane.start_etcd()
    await asyncio.to_thread(plane.start_api)
    (second,) = node_environment.add(1)
    await node_environment.until_ready()
    await node_environment.client.delete(NODES, first)  # and it comes back as another one
    await node_environment.until_it_beats(second)

    for program in ("kube-apiserver", "etcd"):
        plane.stop(program)
    await asyncio.to_thread(shutil.rmtree, plane.folder / "etcd")
    (plane.folder / "backup").rename(plane.folder / "etcd")
    plane.start_etcd()
    await asyncio.to_thread(plane.start_api)

    async def has_both() -> bool:
        names = {
            one["metadata"]["name"] for one in (await node_environment.client.list(NODES)).items
        }
        return names == {first, second, "foreign"}

    await node_environment.until(has_both, "both nodes and the foreign one")
    for name in (first, second):
        await node_environment.until_it_beats(name)
        assert await node_environment.condition(name) == "True"
    assert (await node_environment.node(first))["metadata"]["uid"] == uid

    # The pod watch began anew too: a pod bound now runs.
    spec = {"nodeName": second, "containers": [{"name": "web", "image": "web:1"}]}
    account = {"metadata": {"name": "default"}}
    await node_environment.client.create(SERVICE_ACCOUNTS, account, node_environment.namespace)
    pod = {"metadata": {"name": "p"}, "spec": spec}
    await node_environment.client.create(PODS, pod, node_environment.namespace)

    async def runs() -> bool:
        return [one["status"]["phase"] for one in await node_environment.pods()] == ["Running"]

    await node_environment.until(runs, "a running pod")


async def test_a_killed_agent_leaves_nodes_that_the_next_one_keeps(
    node_environment: NodeEnvironment,
) -> None:
    names = node_environment.add(2)
    specs = msgspec.json.encode(node_environment.specs)

    async def start() -> asyncio.subprocess.Process:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.nodes.agent_process"),
            str(node_environment.plane.folder / "admin.kubeconfig"),
            cwd=ROOT,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(specs)
        process.stdin.close()
        async with asyncio.timeout(30):
            assert await process.stdout.readline() == b"ready\n"
        return process

    agent = await start()
    await node_environment.apply(deployment("web", 4, tolerations=[]))
    await node_environment.kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    uids = {name: (await node_environment.node(name))["metadata"]["uid"] for name in names}
    pods = {pod["metadata"]["uid"] for pod in await node_environment.pods()}

    agent.send_signal(signal.SIGKILL)
    await agent.wait()
    agent = await start()
    try:
        for name in names:
            await node_environment.until_it_beats(name)
            assert await node_environment.condition(name) == "True"
        assert {
            name: (await node_environment.node(name))["metadata"]["uid"] for name in names
        } == uids
        assert {pod["metadata"]["uid"] for pod in await node_environment.pods()} == pods
    finally:
        agent.send_signal(signal.SIGKILL)
        await agent.wait()
