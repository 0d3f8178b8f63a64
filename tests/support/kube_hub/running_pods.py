"""Nodes that run whatever is put on them, at once, on a real API server. As small as a kubelet can be."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from boatyard.kube.client import KubeClient
from boatyard.kube.informer import Informer, split_key
from boatyard.kube.kinds import NODES, PODS
from boatyard.model.errors import NotFound


async def put_node(client: KubeClient, name: str, *, ready: bool = True) -> None:
    await client.apply(NODES, name, {"metadata": {"labels": {"kubernetes.io/os": "linux"}}})
    conditions = [{"type": "Ready", "status": "True" if ready else "False", "reason": "Test"}]
    room = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    status = {"conditions": conditions, "capacity": room, "allocatable": room}
    await client.merge_patch(NODES, name, {"status": status}, subresource="status")


@asynccontextmanager
async def pods_running(
    client: KubeClient, nodes: Sequence[str], *, how: str = "run"
) -> AsyncIterator[None]:
    """While inside, pods on the nodes "run", "succeed", "fail" or lack their "image"."""
    for name in nodes:
        await put_node(client, name)
    informer = Informer(client, PODS)
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(informer.run()),
            group.create_task(_kubelet(client, informer, how)),
        ]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
    for name in nodes:
        await client.delete(NODES, name)


async def _kubelet(client: KubeClient, informer: Informer, how: str) -> None:
    while True:
        key = await informer.next_key()
        pod = informer.get(key)
        if pod is None or not pod["spec"].get("nodeName"):
            continue
        namespace, name = split_key(key)
        try:
            if pod["metadata"].get("deletionTimestamp"):
                await client.delete(PODS, name, namespace, grace=0, uid=pod["metadata"]["uid"])
            elif pod["status"].get("phase") == "Pending":
                status = {"status": _status(how)}
                await client.merge_patch(PODS, name, status, namespace, subresource="status")
        except NotFound:
            continue


def _status(how: str) -> dict[str, Any]:
    def container(**state: Any) -> list[dict[str, Any]]:
        about = {"name": "main", "image": "x", "imageID": "", "restartCount": 0}
        return [{**about, "ready": how == "run", "state": state}]

    ready = [{"type": "Ready", "status": "True" if how == "run" else "False"}]
    match how:
        case "run":
            return {
                "phase": "Running",
                "conditions": ready,
                "containerStatuses": container(running={}),
            }
        case "succeed":
            ended = {"terminated": {"exitCode": 0, "reason": "Completed"}}
            return {
                "phase": "Succeeded",
                "conditions": ready,
                "containerStatuses": container(**ended),
            }
        case "fail":
            ended = {"terminated": {"exitCode": 1, "reason": "Error"}}
            return {"phase": "Failed", "conditions": ready, "containerStatuses": container(**ended)}
    waiting = container(waiting={"reason": "ImagePullBackOff"})
    return {"phase": "Pending", "conditions": ready, "containerStatuses": waiting}
