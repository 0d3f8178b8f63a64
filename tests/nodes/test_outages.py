"""An API server that goes away, stands still or forgets, and an agent that is killed: the nodes outlast it."""

from __future__ import annotations

import asyncio
import shutil
import signal
import sys
from pathlib import Path

import msgspec

from boatyard.kube.kinds import NODES, PODS, SERVICE_ACCOUNTS
from tests.support.node_field import Field, deployment

ROOT = Path(__file__).parents[2]


async def test_an_api_server_that_is_killed_and_comes_back_has_its_nodes(bare_field: Field) -> None:
    field = bare_field
    first, second = field.add(2)
    field.start()
    await field.until_ready()

    field.plane.stop("kube-apiserver")
    field.twin.do("twin.node_not_ready", host=field.host_of(second))
    await asyncio.sleep(3)  # several heartbeats fail meanwhile
    field.plane.start_api()

    await field.until_it_beats(first)
    assert await field.condition(first) == "True"

    async def says_so() -> bool:
        return await field.condition(second) == "False"

    await field.until(says_so, "what happened to its machine meanwhile")


async def test_an_api_server_that_stands_still_is_waited_for(bare_field: Field) -> None:
    field = bare_field
    (name,) = field.add(1)
    field.start()
    await field.until_ready()

    field.plane.signal("kube-apiserver", signal.SIGSTOP)
    await asyncio.sleep(7)  # longer than the client waits for an answer
    field.plane.signal("kube-apiserver", signal.SIGCONT)

    await field.until_it_beats(name)
    assert field.state(name).ready


async def test_a_cluster_restored_from_a_backup_gets_its_nodes_anew(bare_field: Field) -> None:
    """The backup knows the first node, not the second, and a third that is nobody's."""
    field, plane = bare_field, bare_field.plane
    (first,) = field.add(1)
    field.start()
    await field.until_ready()
    await field.client.create(NODES, {"metadata": {"name": "foreign"}})
    uid = (await field.node(first))["metadata"]["uid"]
    for program in ("kube-apiserver", "etcd"):
        plane.stop(program)
    await asyncio.to_thread(shutil.copytree, plane.folder / "etcd", plane.folder / "backup")
    plane.start_etcd()
    await asyncio.to_thread(plane.start_api)
    (second,) = field.add(1)
    await field.until_ready()
    await field.client.delete(NODES, first)  # and it comes back as another one
    await field.until_it_beats(second)

    for program in ("kube-apiserver", "etcd"):
        plane.stop(program)
    await asyncio.to_thread(shutil.rmtree, plane.folder / "etcd")
    (plane.folder / "backup").rename(plane.folder / "etcd")
    plane.start_etcd()
    await asyncio.to_thread(plane.start_api)

    async def has_both() -> bool:
        names = {one["metadata"]["name"] for one in (await field.client.list(NODES)).items}
        return names == {first, second, "foreign"}

    await field.until(has_both, "both nodes and the foreign one")
    for name in (first, second):
        await field.until_it_beats(name)
        assert await field.condition(name) == "True"
    assert (await field.node(first))["metadata"]["uid"] == uid

    # The pod watch began anew too: a pod bound now runs.
    spec = {"nodeName": second, "containers": [{"name": "web", "image": "web:1"}]}
    account = {"metadata": {"name": "default"}}
    await field.client.create(SERVICE_ACCOUNTS, account, field.namespace)
    pod = {"metadata": {"name": "p"}, "spec": spec}
    await field.client.create(PODS, pod, field.namespace)

    async def runs() -> bool:
        return [one["status"]["phase"] for one in await field.pods()] == ["Running"]

    await field.until(runs, "a running pod")


async def test_a_killed_agent_leaves_nodes_that_the_next_one_keeps(field: Field) -> None:
    names = field.add(2)
    specs = msgspec.json.encode(field.specs)

    async def start() -> asyncio.subprocess.Process:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.nodes.agent_process"),
            str(field.plane.folder / "admin.kubeconfig"),
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
    await field.apply(deployment("web", 4, tolerations=[]))
    await field.kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    uids = {name: (await field.node(name))["metadata"]["uid"] for name in names}
    pods = {pod["metadata"]["uid"] for pod in await field.pods()}

    agent.send_signal(signal.SIGKILL)
    await agent.wait()
    agent = await start()
    try:
        for name in names:
            await field.until_it_beats(name)
            assert await field.condition(name) == "True"
        assert {name: (await field.node(name))["metadata"]["uid"] for name in names} == uids
        assert {pod["metadata"]["uid"] for pod in await field.pods()} == pods
    finally:
        agent.send_signal(signal.SIGKILL)
        await agent.wait()
