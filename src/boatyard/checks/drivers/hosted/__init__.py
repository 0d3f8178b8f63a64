"""Checks of a cluster that HyperShift hosts, through the cluster's own API: one per file, in the order shown."""

from __future__ import annotations

from collections.abc import Mapping

from boatyard.checks.drivers.hosted import api, nodes
from boatyard.checks.drivers.kube import KubeChecks, certificates, names
from boatyard.checks.drivers.kube.check_context import CheckFunction


class HostedChecks(KubeChecks):
    """Leaves out what HyperShift is responsible for (operators, etcd, scheduler): the platform reads its conditions."""

    checks: Mapping[str, CheckFunction] = {
        "names": names.check_names,
        "api": api.check_api,
        "certificates": certificates.check_certificates,
        "nodes": nodes.check_nodes,
    }
