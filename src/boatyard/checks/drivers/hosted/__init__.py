"""Checks of a cluster that HyperShift hosts, through the cluster's own API: one per file, in the order shown."""

from __future__ import annotations

from collections.abc import Mapping

from boatyard.checks.drivers.hosted import api, nodes
from boatyard.checks.drivers.kube import KubeChecks, certificates, names
from boatyard.checks.drivers.kube.asking import Question


class HostedChecks(KubeChecks):
    """Leaves out what HyperShift is responsible for (operators, etcd, scheduler): the platform reads its conditions."""

    questions: Mapping[str, Question] = {
        "names": names.ask,
        "api": api.ask,
        "certificates": certificates.ask,
        "nodes": nodes.ask,
    }
