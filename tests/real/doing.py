"""What a keeper does with a node, as a process that may be killed: `python -m tests.real.doing build SLUG FOLDER`."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from datetime import UTC, datetime
from pathlib import Path

from boatyard.pki.authority import Authority
from boatyard.platforms.drivers.local import real
from boatyard.processes.marked_processes import ProcessSpec, start_process

GATEWAY = "10.78.0.1"


async def build(slug: str, folder: Path) -> None:
    """A node without a cluster: everything is there and runs, and nobody answers its kubelet."""
    await real.prepare_segment(slug, f"{GATEWAY}/24")
    node = make_node(slug, folder)
    await real.prepare_node(node)
    for component in real.list_programs(node):
        start_process(
            ProcessSpec(
                mark=f"test-real/{slug}/{component.name}",
                argv=component.argv,
                executable=component.executable,
                directory=node.directory,
                log=folder / f"{component.name}.log",
                netns=component.netns,
            )
        ).close()
        if component.name == "containerd":
            while not await component.is_ready():  # noqa: ASYNC110 - nobody tells us
                await asyncio.sleep(0.01)
            await real.import_images(node)


async def clean(slug: str, folder: Path) -> None:
    for name in {"n1", *await real.list_nodes(slug)}:
        await real.clean_node(slug, name, folder / name)
    await real.clean_segment(slug)


def make_node(slug: str, folder: Path) -> real.RealNode:
    ca = Authority.create("test", now=datetime.now(UTC))
    pem = ca.issue("n1", addresses=["10.78.0.11"], server=True, now=datetime.now(UTC))
    cluster = {"server": f"https://{GATEWAY}:6443"}
    kubeconfig = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "c", "user": {}}],
    }
    return real.RealNode(
        slug=slug,
        name="n1",
        number=1,
        address="10.78.0.11/24",
        pod_cidr="10.131.1.0/24",
        directory=folder / "n1",
        kubelet=Path(os.environ["KUBELET"]),
        kubeconfig=json.dumps(kubeconfig),
        ca=ca.pem.certificate,
        serving_cert=pem.certificate,
        serving_key=pem.key,
    )


if __name__ == "__main__":
    print("ready", flush=True)
    asyncio.run({"build": build, "clean": clean}[sys.argv[1]](sys.argv[2], Path(sys.argv[3])))
    print("done", flush=True)
