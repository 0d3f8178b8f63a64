"""The values of a hub check: what was collected from a Kubernetes hub (`Seen`), and what it means (`Finding`). Pure.

A part of `Seen` that was not asked for, or that we may not see, is None.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from boatyard.model.generated.boatyard import HubFindingResult
from boatyard.model.generated.osac import HubConditionType

Manifest = Mapping[str, Any]


@dataclass(frozen=True)
class Rights:
    """Rules of a role: what is asked for, or what is granted."""

    rules: Sequence[Manifest] = ()
    incomplete: bool = False  # the hub could not name all that it grants


@dataclass(frozen=True)
class Need:
    """One verb on one resource; `resource` may have a subresource, `name` narrows it to one object."""

    group: str
    resource: str
    verb: str
    name: str = ""

    def __str__(self) -> str:
        where = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{self.verb} {where}" + (f" {self.name}" if self.name else "")


@dataclass(frozen=True)
class Roles:
    """What is shipped: which rights the service needs on a hub, and which its operator needs."""

    service: Rights = Rights()  # everywhere on the hub
    system: Rights = Rights()  # in our own namespace there
    looking: Rights = Rights()  # to say more about the hub, and to learn its capacity
    operator: Rights = Rights()  # everywhere
    operator_system: Rights = Rights()  # in our own namespace
    operator_hosted: Rights = Rights()  # everywhere, where control planes are hosted
    operator_eda: Rights = Rights()  # in our own namespace, where playbooks make clusters
    automation: Rights = Rights()  # everywhere; those of the playbooks


@dataclass(frozen=True)
class Lease:
    holder: str
    renewed_at: datetime | None
    seconds: int


@dataclass(frozen=True)
class Surroundings:
    """What clusters will need of the hub besides us. Asked for by a thorough look only."""

    storage_classes: Mapping[str, bool] | None = None  # name to whether it is the default
    metallb: bool = False  # its kinds are served
    address_pools: int | None = None  # of MetalLB
    balanced: bool | None = None  # some Service of type LoadBalancer has been given an address
    providers: frozenset[str] | None = None  # of nodes: "aws", "openstack"; empty without a cloud
    # Of their rights; the operator's by the file that grants them.
    operator_lacks: Mapping[str, Sequence[Need]] | None = None
    automation_lacks: Sequence[Need] | None = None
    automation_secret: bool | None = None  # the one that the hub's settings name is there
    outdated: Mapping[str, bool] = field(default_factory=dict)  # CRDs of ours: other than ours


@dataclass(frozen=True)
class Seen:
    """One look at a hub that answered."""

    server: str
    took: float  # seconds until the first answer
    version: str
    cluster_uid: str = ""  # of kube-system; empty when we may not see it
    user: str = ""
    hub_time: datetime | None = None
    cluster_rights: Rights = Rights()  # ours, everywhere
    system_rights: Rights = Rights()  # ours, in our namespace
    confirmed: frozenset[Need] = frozenset()  # granted although no rule says so
    served: frozenset[tuple[str, str]] = frozenset()  # (group/version, plural)
    namespace: bool | None = None
    settings: Manifest | None = None  # our ConfigMap; None when it is not there
    lease: Lease | None = None
    around: Surroundings | None = None


PASSED, WARNED, FAILED = (
    HubFindingResult.PASSED,
    HubFindingResult.WARNED,
    HubFindingResult.FAILED,
)

ROLES_AT_RISK = "RolesAtRisk"  # reason of a condition that holds, with a caution


@dataclass(frozen=True)
class Finding:
    """One answer about a hub. `condition` is what a failure makes false; `reason` is for machines."""

    check: str
    result: HubFindingResult
    message: str
    remedy: str = ""
    reason: str = ""
    condition: HubConditionType = HubConditionType.UNSPECIFIED


def roles_finding(words: str) -> Finding:
    """What those who run the roles of templates are to be told; the hub works nevertheless."""
    drivers = HubConditionType.DRIVERS_READY
    return Finding("roles", WARNED, words, "", ROLES_AT_RISK, drivers)
