"""Real nodes: a kubelet, a containerd and optionally a kube-proxy each, in namespaces of their own.

Usage: `prepare_node`, start the components in order, `import_images` once containerd is ready. To remove a
node call `clean_node`, which also ends its processes.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from boatyard.model.errors import Unavailable
from boatyard.netns.commands import run_command
from boatyard.netns.links import (
    allow_forwarding,
    delete_link,
    delete_routes,
    ensure_address,
    ensure_route,
    ensure_veth_pair,
    list_addresses,
)
from boatyard.netns.namespaces import delete_namespace, ensure_namespace, is_namespace, run_inside
from boatyard.platforms.drivers.local.real import cgroups, settings
from boatyard.platforms.drivers.local.real.images import write_images
from boatyard.platforms.drivers.local.real.mounts import unmount_below
from boatyard.platforms.drivers.local.real.names import node_name, segment_name
from boatyard.platforms.drivers.local.real.node import BRIDGE, LINK, NodeProgram, RealNode
from boatyard.platforms.drivers.local.real.process_cleanup import end_processes
from boatyard.platforms.drivers.local.real.requirements import (
    check_requirements,
    find_busybox,
    find_program,
    find_programs,
)
from boatyard.platforms.drivers.local.real.root_filesystem import (
    IMAGES_FILE,
    make_plan,
    snapshotter,
)
from boatyard.platforms.drivers.local.real.segment import gateway_of

_ENTER_SCRIPT = Path(__file__).with_name("enter.py")
_PLAN_FILE = "enter.json"
_IMPORT_SECONDS = 60.0
_PROBE_SECONDS = 1.0


async def prepare_node(node: RealNode) -> None:
    """Prepares everything a node needs but its processes. May be called at any time, also while it runs.

    Refused with what is missing when the machine cannot have real nodes; Unavailable without a segment.
    """
    await asyncio.to_thread(check_requirements)
    gateway = await gateway_of(node.slug)
    await ensure_namespace(node.netns)
    await ensure_veth_pair(node.segment, node.link_name, BRIDGE, node.netns, LINK)
    await ensure_address(node.netns, LINK, node.address, gateway)
    await allow_forwarding(node.netns)
    # Nodes have a route only to the gateway; the gateway has the routes to the pods of each node.
    await ensure_route(node.segment, node.pod_cidr, node.ip)
    await asyncio.to_thread(cgroups.make_groups, node.netns, node.limits)
    await asyncio.to_thread(_write_files, node)


def list_programs(node: RealNode) -> Sequence[NodeProgram]:
    """Returns the node's programs in the order of their start; each starts when the one before is ready."""
    containerd = ["containerd", "--config=/etc/containerd/config.toml"]
    kubelet = ["kubelet", *settings.kubelet_arguments(node)]
    programs = [
        _component(node, find_program("containerd"), containerd, _containerd_is_ready),
        _component(node, node.kubelet, kubelet, _kubelet_is_ready),
    ]
    if node.kube_proxy is not None and node.proxy_kubeconfig:
        proxy = ["kube-proxy", "--config=/etc/kubernetes/kube-proxy.json", "--v=0"]
        programs.append(_component(node, node.kube_proxy, proxy, _proxy_is_ready))
    return programs


async def import_images(node: RealNode) -> None:
    """Imports the images into a containerd that is ready. May be repeated. Takes some tenths of a second."""
    ctr = ["ctr", f"--address={settings.CONTAINERD_SOCKET}", "--namespace=k8s.io"]
    command = [*ctr, "images", "import", "--all-platforms", f"/{IMAGES_FILE}"]
    await run_command(*_argv(node, find_program("ctr"), command), seconds=_IMPORT_SECONDS)


async def clean_node(slug: str, name: str, directory: Path) -> None:
    """Removes all of a node: processes, links, namespaces, groups, files. Does nothing when there is none.

    Works from any partial state. The caller ensures that the node's components are not started any more.
    """
    netns, segment = node_name(slug, name), segment_name(slug)
    await asyncio.to_thread(end_processes, netns)
    if is_namespace(netns):
        if is_namespace(segment):
            for address in await list_addresses(netns, LINK):
                await delete_routes(segment, address.partition("/")[0])
        await delete_link(netns, LINK)
    await delete_namespace(netns)
    await asyncio.to_thread(cgroups.remove, netns)
    await asyncio.to_thread(_remove_files, directory)


async def freeze_node(slug: str, name: str, *, frozen: bool) -> None:
    """Freezes or thaws all processes of a node, with its pods. Does nothing when there are none."""
    await asyncio.to_thread(cgroups.freeze, node_name(slug, name), frozen=frozen)


def _component(
    node: RealNode,
    program: Path,
    command: Sequence[str],
    ready: Callable[[RealNode], Awaitable[bool]],
) -> NodeProgram:
    return NodeProgram(
        name=command[0],
        executable=Path(sys.executable),
        argv=tuple(_argv(node, program, command)),
        netns=node.netns,
        environ={},
        is_ready=lambda: ready(node),
    )


def _argv(node: RealNode, program: Path, command: Sequence[str]) -> list[str]:
    plan = node.directory / _PLAN_FILE
    return [sys.executable, "-I", "-S", str(_ENTER_SCRIPT), str(plan), str(program), *command]


def _write_files(node: RealNode) -> None:
    directory, programs = node.directory, find_programs()
    for name in ("root", "etc", "sockets", "kubelet", "containerd", "log"):
        (directory / name).mkdir(parents=True, exist_ok=True, mode=0o700)
    for subdirectory in ("etc", "log", "kubelet", "containerd"):
        (directory / subdirectory).chmod(0o755)  # as on any machine: pods may run as any user
    files = settings.render_files(node, programs, snapshotter=snapshotter(directory))
    for name, content in files.items():
        mode = 0o755 if name == settings.SHIM else 0o600 if "kubernetes/" in name else 0o644
        _write(directory / "etc" / name, content, mode)
    write_images(find_busybox(), directory / IMAGES_FILE)
    _write(directory / _PLAN_FILE, json.dumps(make_plan(node, programs)).encode(), 0o600)


def _write(path: Path, content: bytes, mode: int) -> None:
    """Writes the file atomically, and only when its content changes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and path.read_bytes() == content:
        return
    draft = path.with_name(path.name + ".new")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(content)
        os.fchmod(file.fileno(), mode)
    draft.replace(path)


def _remove_files(directory: Path) -> None:
    unmount_below(directory)
    try:
        shutil.rmtree(directory)
    except FileNotFoundError:
        return
    except OSError as error:
        raise Unavailable(f"{directory} cannot be removed: {error}") from error


async def _containerd_is_ready(node: RealNode) -> bool:
    return await asyncio.to_thread(_answers_on_socket, node.directory / "sockets")


def _answers_on_socket(directory: Path) -> bool:
    """Whether containerd's socket accepts a connection. Uses a descriptor: the path may be too long for a socket."""
    try:
        descriptor = os.open(directory, os.O_PATH)
    except OSError:
        return False
    try:
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(_PROBE_SECONDS)
            name = Path(settings.CONTAINERD_SOCKET).name
            return sock.connect_ex(f"/proc/self/fd/{descriptor}/{name}") == 0
    finally:
        os.close(descriptor)


async def _kubelet_is_ready(node: RealNode) -> bool:
    return await _is_healthy(node.netns, settings.KUBELET_HEALTH_PORT)


async def _proxy_is_ready(node: RealNode) -> bool:
    return await _is_healthy(node.netns, settings.PROXY_HEALTH_PORT)


async def _is_healthy(netns: str, port: int) -> bool:
    def ask() -> bool:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=_PROBE_SECONDS) as sock:
                sock.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
                return b" 200 " in sock.recv(64)
        except OSError:
            return False

    try:
        return await run_inside(netns, ask)
    except Unavailable:
        return False
