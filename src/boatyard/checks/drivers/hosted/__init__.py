"""Questions put to a cluster that HyperShift hosts, through its own API: one per file, in the order they are shown."""

from __future__ import annotations

from collections.abc import Mapping

from boatyard.checks.drivers.hosted import api, nodes
from boatyard.checks.drivers.kube import KubeChecks, certificates, names
from boatyard.checks.drivers.kube.asking import Question


class HostedChecks(KubeChecks):
    """What HyperShift answers for (operators, store, scheduler) is in its conditions, which the platform reads."""

    questions: Mapping[str, Question] = {
        "names": names.ask,
        "api": api.ask,
        "certificates": certificates.ask,
        "nodes": nodes.ask,
    }
