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
    """RBAC rules: those required, or those granted."""

    rules: Sequence[Manifest] = ()
    incomplete: bool = False  # the hub could not list all granted rights


@dataclass(frozen=True)
class Need:
    """One required verb on one resource. `resource` may have a subresource; `name` restricts it to one object."""

    group: str
    resource: str
    verb: str
    name: str = ""

    def __str__(self) -> str:
        where = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{self.verb} {where}" + (f" {self.name}" if self.name else "")


@dataclass(frozen=True)
class Roles:
    """The rights that the shipped RBAC manifests grant: to the service, to the operator, and to playbooks."""

    service: Rights = Rights()  # everywhere on the hub
    system: Rights = Rights()  # in our own namespace there
    discovery: Rights = Rights()  # to report more about the hub, and to determine its capacity
    operator: Rights = Rights()  # everywhere
    operator_system: Rights = Rights()  # in our own namespace
    operator_hosted: Rights = Rights()  # everywhere, where control planes are hosted
    operator_eda: Rights = Rights()  # in our own namespace, where playbooks make clusters
    automation: Rights = Rights()  # everywhere; those of the playbooks


@dataclass(frozen=True)
class OperatorLease:
    holder: str
    renewed_at: datetime | None
    seconds: int


@dataclass(frozen=True)
class ClusterPrerequisites:
    """What clusters will need of the hub besides orders. Collected by a thorough check only."""

    storage_classes: Mapping[str, bool] | None = None  # name to whether it is the default
    metallb: bool = False  # its kinds are served
    address_pools: int | None = None  # of MetalLB
    has_balanced_service: bool | None = (
        None  # some Service of type LoadBalancer has been given an address
    )
    providers: frozenset[str] | None = None  # of nodes: "aws", "openstack"; empty without a cloud
    # Missing rights; the operator's by the file that grants them.
    operator_missing_rights: Mapping[str, Sequence[Need]] | None = None
    automation_missing_rights: Sequence[Need] | None = None
    has_automation_secret: bool | None = (
        None  # whether the Secret named in the hub's settings exists
    )
    outdated_crds: Mapping[str, bool] = field(
        default_factory=dict
    )  # our CRDs: installed one differs


@dataclass(frozen=True)
class HubSnapshot:
    """The state of a hub that answered, as one check collected it."""

    server: str
    response_seconds: float  # seconds until the first answer
    version: str
    cluster_uid: str = ""  # of kube-system; empty when we may not see it
    user: str = ""
    hub_time: datetime | None = None
    cluster_rights: Rights = Rights()  # ours, everywhere
    system_rights: Rights = Rights()  # ours, in our namespace
    confirmed_needs: frozenset[Need] = frozenset()  # granted although no listed rule says so
    served_resources: frozenset[tuple[str, str]] = frozenset()  # (group/version, plural)
    has_namespace: bool | None = None
    settings: Manifest | None = None  # our ConfigMap; None when it is not there
    lease: OperatorLease | None = None
    prerequisites: ClusterPrerequisites | None = None


PASSED, WARNED, FAILED = (
    HubFindingResult.PASSED,
    HubFindingResult.WARNED,
    HubFindingResult.FAILED,
)

ROLES_AT_RISK = "RolesAtRisk"  # reason of a true condition that carries a warning


@dataclass(frozen=True)
class HubCheckFinding:
    """One result of a hub check. `condition` becomes false when it failed; `reason` is for machines."""

    check: str
    result: HubFindingResult
    message: str
    remedy: str = ""
    reason: str = ""
    condition: HubConditionType = HubConditionType.UNSPECIFIED


def make_roles_finding(words: str) -> HubCheckFinding:
    """A warning about how roles of templates run on the hub; the hub works nevertheless."""
    drivers = HubConditionType.DRIVERS_READY
    return HubCheckFinding("roles", WARNED, words, "", ROLES_AT_RISK, drivers)
