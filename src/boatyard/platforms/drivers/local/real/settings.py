"""Renders the configuration files of a node's programs below /etc. Pure."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from boatyard.platforms.drivers.local.real.images import PAUSE_IMAGE
from boatyard.platforms.drivers.local.real.node import RealNode
from boatyard.platforms.drivers.local.real.requirements import RuntimePrograms
from boatyard.processes.marked_processes import MARK_VARIABLE

CONTAINERD_SOCKET = "/run/boatyard/containerd.sock"
FIRST_IN_PATH = "/etc/boatyard"
SHIM = "boatyard/containerd-shim-runc-v2"
KUBELET_HEALTH_PORT, PROXY_HEALTH_PORT = 10248, 10256
_KUBERNETES = "/etc/kubernetes"


def render_files(
    node: RealNode, programs: RuntimePrograms, *, snapshotter: str
) -> dict[str, bytes]:
    """Returns the files by their path below /etc."""
    identity = hashlib.sha256(node.netns.encode()).hexdigest()[:32]
    texts = {
        "hostname": f"{node.name}\n",
        "hosts": f"127.0.0.1 localhost\n{node.ip} {node.name}\n",
        "machine-id": f"{identity}\n",
        "passwd": "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n",
        "group": "root:x:0:\nnogroup:x:65534:\n",
        "nsswitch.conf": "hosts: files dns\n",
        "resolv.conf": "",
        "containerd/config.toml": _containerd(programs, snapshotter),
        "cni/net.d/10-pods.conflist": _json(_network(node)),
        "kubernetes/kubelet.json": _json(_kubelet(node)),
        "kubernetes/kubelet.kubeconfig": node.kubeconfig,
        # A shim must not inherit the mark of the containerd that started it.
        SHIM: f'#!/bin/sh\nunset {MARK_VARIABLE}\nexec {programs.shim} "$@"\n',
    }
    if node.has_proxy:
        texts["kubernetes/kube-proxy.json"] = _json(_proxy(node))
        texts["kubernetes/kube-proxy.kubeconfig"] = node.proxy_kubeconfig
    return {name: text.encode() for name, text in texts.items()} | {
        "kubernetes/ca.crt": node.ca,
        "kubernetes/kubelet.crt": node.serving_cert,
        "kubernetes/kubelet.key": node.serving_key,
    }


def kubelet_arguments(node: RealNode) -> list[str]:
    arguments = [
        f"--config={_KUBERNETES}/kubelet.json",
        f"--kubeconfig={_KUBERNETES}/kubelet.kubeconfig",
        f"--hostname-override={node.name}",
        f"--node-ip={node.ip}",
        "--v=0",
    ]
    if node.labels:
        labels = ",".join(f"{name}={value}" for name, value in sorted(node.labels.items()))
        arguments.append(f"--node-labels={labels}")
    return arguments


def _kubelet(node: RealNode) -> dict[str, Any]:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": node.ip,
        "healthzPort": KUBELET_HEALTH_PORT,
        "containerRuntimeEndpoint": f"unix://{CONTAINERD_SOCKET}",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": f"{_KUBERNETES}/ca.crt"},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": f"{_KUBERNETES}/kubelet.crt",
        "tlsPrivateKeyFile": f"{_KUBERNETES}/kubelet.key",
        "clusterDomain": node.cluster_domain,
        "clusterDNS": [node.cluster_dns] if node.cluster_dns else [],
        "resolvConf": "/etc/resolv.conf",
        "cgroupRoot": f"/{node.netns}",
        "cgroupDriver": "cgroupfs",
        "failCgroupV1": False,  # else it exits on machines with control groups version 1
        "failSwapOn": False,
        "oomScoreAdj": 0,  # when the machine is short of memory, it is not preferred to other programs
        # The images come from no registry: one that was garbage-collected could not be pulled again.
        "imageGCHighThresholdPercent": 100,
        # The disk is shared with the machine: pods are evicted only when it is nearly full.
        "evictionHard": {
            "memory.available": "100Mi",
            "nodefs.available": "1%",
            "imagefs.available": "1%",
            "nodefs.inodesFree": "1%",
        },
        "makeIPTablesUtilChains": False,
        "enableDebuggingHandlers": True,
        "maxPods": 110,
        "serializeImagePulls": False,
    }


def _network(node: RealNode) -> dict[str, Any]:
    return {
        "cniVersion": "0.4.0",
        "name": "pods",
        "plugins": [
            {
                # Point to point: packets are routed even between pods of one node, so that the address
                # translation of services works on the way back, with or without br_netfilter.
                "type": "ptp",
                "ipMasq": False,
                "ipam": {
                    "type": "host-local",
                    "dataDir": "/run/cni",
                    "ranges": [[{"subnet": node.pod_cidr}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                },
            },
            {"type": "portmap", "capabilities": {"portMappings": True}},
        ],
    }


def _proxy(node: RealNode) -> dict[str, Any]:
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": f"{_KUBERNETES}/kube-proxy.kubeconfig"},
        "hostnameOverride": node.name,
        "mode": "nftables",
        "bindAddress": node.ip,
        "healthzBindAddress": f"127.0.0.1:{PROXY_HEALTH_PORT}",
        "metricsBindAddress": "127.0.0.1:10249",
        "detectLocalMode": "InterfaceNamePrefix",
        "detectLocal": {"interfaceNamePrefix": "veth"},
        "oomScoreAdj": 0,
        # The connection tracking tables belong to the machine; a node does not change them.
        "conntrack": {
            "maxPerCore": 0,
            "min": 0,
            "tcpEstablishedTimeout": "0s",
            "tcpCloseWaitTimeout": "0s",
        },
    }


def _containerd(programs: RuntimePrograms, snapshotter: str) -> str:
    return f"""\
version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = [
    "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
    "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs",
    "io.containerd.internal.v1.opt", "io.containerd.internal.v1.tracing",
]

[grpc]
address = "{CONTAINERD_SOCKET}"

[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{PAUSE_IMAGE}"
# Without the right to lower a score, asking for a lower one ends every sandbox.
restrict_oom_score_adj = true
# A profile would be loaded into the machine's kernel and stay there.
disable_apparmor = true

[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{programs.plugins}"
conf_dir = "/etc/cni/net.d"

[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "{snapshotter}"
default_runtime_name = "runc"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
BinaryName = "{programs.runc}"
SystemdCgroup = false
"""


def _json(content: Any) -> str:
    return json.dumps(content, indent=1) + "\n"
