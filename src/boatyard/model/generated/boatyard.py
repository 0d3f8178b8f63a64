"""Orders and what is asked about them. Made by tools/generate.py from proto/; not edited."""

from collections.abc import Mapping
from datetime import datetime
from enum import IntEnum
from typing import Any

import msgspec

from boatyard.model.generated import osac


class Actor(IntEnum):
    UNSPECIFIED = 0
    NOBODY = 1  # it goes on by itself
    TENANT = 2
    OPERATOR = 3


class BackupState(IntEnum):
    UNSPECIFIED = 0
    PENDING = 1
    READY = 2
    FAILED = 3


class HubFindingResult(IntEnum):
    UNSPECIFIED = 0
    PASSED = 1
    WARNED = 2  # orders go there, but some may not succeed
    FAILED = 3  # no orders go there


class ItemState(IntEnum):
    UNSPECIFIED = 0
    PLANNED = 1  # may exist outside: an effect is only tried for what is written here
    PRESENT = 2
    LEAVING = 3


class OrderPhase(IntEnum):
    UNSPECIFIED = 0
    PROGRESSING = 1
    READY = 2
    FAILED = 3
    DELETING = 4
    DELETED = 5
    DEGRADED = 6
    RESTING = 7


class StepState(IntEnum):
    UNSPECIFIED = 0
    QUEUED = 1
    RUNNING = 2
    WAITING = 3
    DONE = 4
    FAILED = 5
    QUARANTINED = 6
    RELEASING = 7
    RELEASED = 8


class TemplateSourceState(IntEnum):
    UNSPECIFIED = 0
    OFFERED = 1
    FAULTY = 2  # what was offered before, if anything was, stays on offer
    WITHDRAWN = 3  # the role is gone; clusters keep what they were ordered with


class AccessIssueRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    # an id or a name
    cluster: str = ""
    # for whom it is; viewers only for themselves
    user: str = ""
    # 600 to 86400; an hour when absent
    ttl_seconds: int | None = None


NO_ACCESS_ISSUE_REQUEST = AccessIssueRequest()


class AccessIssueResponse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    kubeconfig: str = ""
    expires_at: datetime | None = None
    # as the cluster knows them
    user: str = ""
    groups: tuple[str, ...] = ()


NO_ACCESS_ISSUE_RESPONSE = AccessIssueResponse()


class BackupSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    # id; a name is accepted when it is made
    cluster: str = ""
    # on the machine of the hub, instead of the platform's own place; operators only
    folder: str = ""


NO_BACKUP_SPEC = BackupSpec()


class BackupStatus(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    state: BackupState = BackupState(0)
    taken_at: datetime | None = None
    bytes: int = 0
    sha256: str = ""
    # that the cluster ran
    version: str = ""
    cluster_name: str = ""
    # one calm sentence
    message: str = ""
    # operators only
    hub: str = ""
    # operators only
    place: str = ""
    # the platform's own words; operators only
    cause: str = ""
    # in a row without success
    tries: int = 0
    # internal errors in a row
    bugs: int = 0
    next_look: datetime | None = None
    # what is not released by then becomes a Leftover
    delete_by: datetime | None = None


NO_BACKUP_STATUS = BackupStatus()


class Backup(osac.Resource, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    spec: BackupSpec = NO_BACKUP_SPEC
    status: BackupStatus = NO_BACKUP_STATUS


NO_BACKUP = Backup()


class BackupsListRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    offset: int | None = None
    limit: int | None = None
    filter: str | None = None
    order: str | None = None


NO_BACKUPS_LIST_REQUEST = BackupsListRequest()


class BackupsListResponse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    size: int = 0
    total: int = 0
    items: tuple[Backup, ...] = ()


NO_BACKUPS_LIST_RESPONSE = BackupsListResponse()


class BackupsGetRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    id: str = ""


NO_BACKUPS_GET_REQUEST = BackupsGetRequest()


class BackupsGetResponse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    object: Backup = NO_BACKUP


NO_BACKUPS_GET_RESPONSE = BackupsGetResponse()


class BackupsCreateRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    object: Backup = NO_BACKUP


NO_BACKUPS_CREATE_REQUEST = BackupsCreateRequest()


class BackupsCreateResponse(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False
):
    object: Backup = NO_BACKUP


NO_BACKUPS_CREATE_RESPONSE = BackupsCreateResponse()


class BackupsDeleteRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    id: str = ""


NO_BACKUPS_DELETE_REQUEST = BackupsDeleteRequest()


class BackupsDeleteResponse(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False
):
    pass


NO_BACKUPS_DELETE_RESPONSE = BackupsDeleteResponse()


class OrderNodeSet(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    host_type: str = ""
    size: int = 0


NO_ORDER_NODE_SET = OrderNodeSet()


class OrderRestore(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Once per request the cluster's objects become those of the backup."""

    request: str = ""
    # id
    backup: str = ""


NO_ORDER_RESTORE = OrderRestore()


class OrderSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    cluster_name: str = ""
    hub: str = ""
    template: str = ""
    template_parameters: Mapping[str, Mapping[str, Any]] = {}
    node_sets: Mapping[str, OrderNodeSet] = {}
    version: str = ""
    release_image: str = ""
    ssh_public_key: str = ""
    pull_secret: str = ""
    pod_cidr: str = ""
    service_cidr: str = ""
    # of the cluster's spec this order follows
    generation: int = 0
    # what is not released by then becomes a Leftover
    delete_by: datetime | None = None
    # what the template tells the platform
    platform_settings: Mapping[str, str] = {}
    rest: osac.ClusterRest = osac.ClusterRest(0)
    restore: OrderRestore = NO_ORDER_RESTORE
    # names of template parameters that are nobody's business
    secret_parameters: tuple[str, ...] = ()
    # of the role's content; empty for a template without a role
    template_digest: str = ""
    # of those parameters, as JSON: name to value with its type
    secret_values: str = ""
    # the parts of the role which are run
    template_phases: tuple[str, ...] = ()
    # of the cluster, for the role to read
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    project: str = ""
    display_name: str = ""


NO_ORDER_SPEC = OrderSpec()


class OrderCondition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    type: str = ""
    status: bool = False
    last_transition_time: datetime | None = None
    reason: str = ""
    message: str = ""


NO_ORDER_CONDITION = OrderCondition()


class Step(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    name: str = ""
    state: StepState = StepState(0)
    since: datetime | None = None
    # in a row without success
    tries: int = 0
    next_look: datetime | None = None
    # CamelCase, for machines
    reason: str = ""
    # one calm sentence
    message: str = ""
    actor: Actor = Actor(0)
    remedy: str = ""
    # what it has made so far: "vlan 1107 · 10.4.16.0/24"
    detail: str = ""
    needs: tuple[str, ...] = ()
    # internal errors in a row
    bugs: int = 0
    started_at: datetime | None = None
    finished_at: datetime | None = None


NO_STEP = Step()


class Item(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    # "port/compute-0", unique within the order; outside: <order id>/<key>
    key: str = ""
    kind: str = ""
    step: str = ""
    node_set: str = ""
    # "compute-0" for what belongs to one node
    slot: str = ""
    state: ItemState = ItemState(0)
    # digest of what it should be
    want: str = ""
    # digest of what was last confirmed
    have: str = ""
    facts: Mapping[str, str] = {}


NO_ITEM = Item()


class ReceiptLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    kind: str = ""
    name: str = ""
    reason: str = ""
    key: str = ""


NO_RECEIPT_LINE = ReceiptLine()


class Receipt(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    requested_at: datetime | None = None
    finished_at: datetime | None = None
    gone: tuple[ReceiptLine, ...] = ()
    left: tuple[ReceiptLine, ...] = ()
    # id of the Leftover that keeps what is left
    leftover: str = ""


NO_RECEIPT = Receipt()


class Credentials(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    kubeconfig: str = ""
    username: str = ""
    # empty where the platform has none
    password: str = ""
    # nothing answers at its address
    simulated: bool = False


NO_CREDENTIALS = Credentials()


class OrderStatus(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    phase: OrderPhase = OrderPhase(0)
    conditions: tuple[OrderCondition, ...] = ()
    steps: tuple[Step, ...] = ()
    items: tuple[Item, ...] = ()
    facts: Mapping[str, str] = {}
    # of the spec the items were planned from
    observed_generation: int = 0
    receipt: Receipt = NO_RECEIPT
    credentials: Credentials = NO_CREDENTIALS
    # when the work on the observed generation began
    started_at: datetime | None = None
    finished_at: datetime | None = None
    # how often somebody asked for a retry
    retried: int = 0
    # per node set
    ready_nodes: Mapping[str, int] = {}
    # per node set, those that exist
    nodes: Mapping[str, int] = {}
    # per node set, the next number: none is ever given twice
    next_slots: Mapping[str, int] = {}
    # the one that runs
    version: str = ""
    # how deep it should rest now: deeper than asked for after a while
    rest: osac.ClusterRest = osac.ClusterRest(0)
    resting_since: datetime | None = None
    # request of the restore that was carried out last
    restored: str = ""


NO_ORDER_STATUS = OrderStatus()


class Order(osac.Resource, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    # id: the id of the cluster it is for
    spec: OrderSpec = NO_ORDER_SPEC
    status: OrderStatus = NO_ORDER_STATUS


NO_ORDER = Order()


class ClusterOrderBareMetal(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False
):
    instance_type: str = ""


NO_CLUSTER_ORDER_BARE_METAL = ClusterOrderBareMetal()


class ClusterOrderNodeRequest(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False
):
    """Both shapes in use: resource_class alone, or node_set with bare_metal."""

    resource_class: str = ""
    number_of_nodes: int = 0
    # The key of the cluster's node set.
    node_set: str = ""
    bare_metal: ClusterOrderBareMetal = NO_CLUSTER_ORDER_BARE_METAL
    # The network card whose address is looked for.
    fabric_interface: str = ""


NO_CLUSTER_ORDER_NODE_REQUEST = ClusterOrderNodeRequest()


class ClusterOrderNetwork(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    pod_cidr: str = ""
    service_cidr: str = ""


NO_CLUSTER_ORDER_NETWORK = ClusterOrderNetwork()


class ClusterOrderNetworkAttachment(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False
):
    subnet_ref: str = ""
    security_group_refs: tuple[str, ...] = ()


NO_CLUSTER_ORDER_NETWORK_ATTACHMENT = ClusterOrderNetworkAttachment()


class ClusterOrderSecretReference(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False
):
    """A Secret beside the order."""

    name: str = ""
    # The resourceVersion it had when it was written for this spec.
    version: str = ""


NO_CLUSTER_ORDER_SECRET_REFERENCE = ClusterOrderSecretReference()


class ClusterOrderExtension(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False
):
    """An order of Boatyard's is what these fields and those of OSAC say together."""

    # Whose order it is; counts only in the namespace and under the name that belong to it.
    cluster_id: str = ""
    cluster_name: str = ""
    hub: str = ""
    version: str = ""
    # Of the cluster's spec that this order follows.
    generation: int = 0
    ordered_at: datetime | None = None
    deleted_at: datetime | None = None
    # What is not released by then becomes a Leftover.
    delete_by: datetime | None = None
    # What the template tells the platform.
    platform_settings: Mapping[str, str] = {}
    rest: osac.ClusterRest = osac.ClusterRest(0)
    restore: OrderRestore = NO_ORDER_RESTORE
    secret_ref: ClusterOrderSecretReference = NO_CLUSTER_ORDER_SECRET_REFERENCE
    # Of template parameters whose JSON does not tell it.
    parameter_types: Mapping[str, str] = {}
    # Names of template parameters whose values are in the Secret.
    secret_parameters: tuple[str, ...] = ()
    # Values that OSAC's field of the same name does not accept.
    template: str = ""
    release_image: str = ""
    ssh_public_key: str = ""
    pod_cidr: str = ""
    service_cidr: str = ""
    tenant: str = ""
    # Of the content of the template's role; empty for a template without one.
    template_digest: str = ""
    # The parts of that role which are run.
    template_phases: tuple[str, ...] = ()
    # Of the cluster, for the role to read.
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    project: str = ""
    display_name: str = ""


NO_CLUSTER_ORDER_EXTENSION = ClusterOrderExtension()


class ClusterOrderSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    template_id: str = ""
    # A JSON map encoded as a string.
    template_parameters: str = ""
    node_requests: tuple[ClusterOrderNodeRequest, ...] = ()
    pull_secret: str = ""
    ssh_public_key: str = ""
    network: ClusterOrderNetwork = NO_CLUSTER_ORDER_NETWORK
    network_attachment: ClusterOrderNetworkAttachment = NO_CLUSTER_ORDER_NETWORK_ATTACHMENT
    release_image: str = ""
    # What Boatyard asks for beyond the rest; absent on orders that others made.
    boatyard: ClusterOrderExtension = NO_CLUSTER_ORDER_EXTENSION


NO_CLUSTER_ORDER_SPEC = ClusterOrderSpec()


class ClusterOrderCondition(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False
):
    type: str = ""
    # True, False or Unknown.
    status: str = ""
    last_transition_time: datetime | None = None
    reason: str = ""
    message: str = ""
    observed_generation: int = 0


NO_CLUSTER_ORDER_CONDITION = ClusterOrderCondition()


class ClusterOrderReference(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False
):
    namespace: str = ""
    hosted_cluster_name: str = ""
    service_account_name: str = ""
    role_binding_name: str = ""


NO_CLUSTER_ORDER_REFERENCE = ClusterOrderReference()


class ClusterOrderAgent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    agent_name: str = ""
    host_name: str = ""
    subnet_ref: str = ""
    ip_address: str = ""


NO_CLUSTER_ORDER_AGENT = ClusterOrderAgent()


class ClusterOrderNodeSet(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    name: str = ""
    fabric_interface: str = ""
    agents: tuple[ClusterOrderAgent, ...] = ()


NO_CLUSTER_ORDER_NODE_SET = ClusterOrderNodeSet()


class ClusterOrderCredentialsReference(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False
):
    """The Secret with the cluster's kubeconfig; absent before there is one."""

    namespace: str = ""
    name: str = ""


NO_CLUSTER_ORDER_CREDENTIALS_REFERENCE = ClusterOrderCredentialsReference()


class ClusterOrderStatus(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    # Progressing, Ready, Failed or Deleting.
    phase: str = ""
    conditions: tuple[ClusterOrderCondition, ...] = ()
    cluster_reference: ClusterOrderReference = NO_CLUSTER_ORDER_REFERENCE
    # What is there, in the shape of what was asked for.
    node_requests: tuple[ClusterOrderNodeRequest, ...] = ()
    desired_config_version: str = ""
    api_endpoint: str = ""
    ingress_endpoint: str = ""
    node_sets: tuple[ClusterOrderNodeSet, ...] = ()
    desired_workers: int | None = None
    current_workers: int | None = None
    ready_workers: int | None = None
    # How far Boatyard has come with it, in full; credentials are in a Secret.
    boatyard: OrderStatus = NO_ORDER_STATUS
    credentials_ref: ClusterOrderCredentialsReference = NO_CLUSTER_ORDER_CREDENTIALS_REFERENCE


NO_CLUSTER_ORDER_STATUS = ClusterOrderStatus()


class HubClaimSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A scarce thing of the hub and who holds it; its name is the hash of pool and item."""

    # "hub-1/hosts"
    pool: str = ""
    item: str = ""
    # "<order id>/<item key>"
    owner: str = ""
    claimed_at: datetime | None = None


NO_HUB_CLAIM_SPEC = HubClaimSpec()


class HubLeftoverSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What a deletion could not take back in time; its status is that of a Leftover."""

    # The id of the order; counts only in the namespace and under the name that belong to it.
    order: str = ""
    tenant: str = ""
    cluster_name: str = ""
    hub: str = ""
    left_at: datetime | None = None


NO_HUB_LEFTOVER_SPEC = HubLeftoverSpec()


class HubsCheckRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    # an id or a name
    hub: str = ""


NO_HUBS_CHECK_REQUEST = HubsCheckRequest()


class HubFinding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    # "rights", "crd claims.boatyard.io"
    check: str = ""
    result: HubFindingResult = HubFindingResult(0)
    message: str = ""
    remedy: str = ""


NO_HUB_FINDING = HubFinding()


class HubReport(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    hub: str = ""
    # of its Kubernetes
    version: str = ""
    # nothing keeps orders from it
    ready: bool = False
    findings: tuple[HubFinding, ...] = ()


NO_HUB_REPORT = HubReport()


class HubsCheckResponse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    report: HubReport = NO_HUB_REPORT


NO_HUBS_CHECK_RESPONSE = HubsCheckResponse()


class HubsPrepareRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    # an id or a name
    hub: str = ""


NO_HUBS_PREPARE_REQUEST = HubsPrepareRequest()


class HubsPrepareResponse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    # one calm sentence each
    done: tuple[str, ...] = ()
    report: HubReport = NO_HUB_REPORT


NO_HUBS_PREPARE_RESPONSE = HubsPrepareResponse()


class LeftoverSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    order: str = ""
    cluster_name: str = ""
    hub: str = ""


NO_LEFTOVER_SPEC = LeftoverSpec()


class LeftoverStatus(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    items: tuple[Item, ...] = ()
    steps: tuple[Step, ...] = ()
    tries: int = 0
    next_look: datetime | None = None
    message: str = ""


NO_LEFTOVER_STATUS = LeftoverStatus()


class Leftover(osac.Resource, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    spec: LeftoverSpec = NO_LEFTOVER_SPEC
    status: LeftoverStatus = NO_LEFTOVER_STATUS


NO_LEFTOVER = Leftover()


class LeftoversListRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    offset: int | None = None
    limit: int | None = None
    filter: str | None = None
    order: str | None = None


NO_LEFTOVERS_LIST_REQUEST = LeftoversListRequest()


class LeftoversListResponse(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False
):
    size: int = 0
    total: int = 0
    items: tuple[Leftover, ...] = ()


NO_LEFTOVERS_LIST_RESPONSE = LeftoversListResponse()


class LeftoversGetRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    id: str = ""


NO_LEFTOVERS_GET_REQUEST = LeftoversGetRequest()


class LeftoversGetResponse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    object: Leftover = NO_LEFTOVER


NO_LEFTOVERS_GET_RESPONSE = LeftoversGetResponse()


class OrdersListRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    offset: int | None = None
    limit: int | None = None
    filter: str | None = None
    order: str | None = None


NO_ORDERS_LIST_REQUEST = OrdersListRequest()


class OrdersListResponse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    size: int = 0
    total: int = 0
    items: tuple[Order, ...] = ()


NO_ORDERS_LIST_RESPONSE = OrdersListResponse()


class OrdersGetRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    id: str = ""


NO_ORDERS_GET_REQUEST = OrdersGetRequest()


class OrdersGetResponse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    object: Order = NO_ORDER


NO_ORDERS_GET_RESPONSE = OrdersGetResponse()


class OrdersExplainRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """`cluster` is an id or a name, in all of these."""

    cluster: str = ""


NO_ORDERS_EXPLAIN_REQUEST = OrdersExplainRequest()


class HubReason(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    hub: str = ""
    fits: bool = False
    score: float = 0.0
    reason: str = ""


NO_HUB_REASON = HubReason()


class Explanation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    # id
    cluster: str = ""
    name: str = ""
    # PROGRESSING, READY, ...
    state: str = ""
    # one sentence
    summary: str = ""
    steps: tuple[Step, ...] = ()
    # the name of the one step that blocks
    blocked_by: str = ""
    actor: Actor = Actor(0)
    remedy: str = ""
    since: datetime | None = None
    next_look: datetime | None = None
    tries: int = 0
    # why this hub, or why none yet
    placement: str = ""
    # every hub's reason; operators only
    hubs: tuple[HubReason, ...] = ()
    receipt: Receipt = NO_RECEIPT
    # the last answer of Follow
    gone: bool = False
    template: str = ""
    started_at: datetime | None = None
    # operators only
    hub: str = ""


NO_EXPLANATION = Explanation()


class OrdersExplainResponse(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False
):
    explanation: Explanation = NO_EXPLANATION


NO_ORDERS_EXPLAIN_RESPONSE = OrdersExplainResponse()


class OrdersFollowRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    cluster: str = ""


NO_ORDERS_FOLLOW_REQUEST = OrdersFollowRequest()


class OrdersFollowResponse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    explanation: Explanation = NO_EXPLANATION


NO_ORDERS_FOLLOW_RESPONSE = OrdersFollowResponse()


class OrdersRetryRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    cluster: str = ""


NO_ORDERS_RETRY_REQUEST = OrdersRetryRequest()


class OrdersRetryResponse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    pass


NO_ORDERS_RETRY_RESPONSE = OrdersRetryResponse()


class OrdersGetReceiptRequest(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False
):
    cluster: str = ""


NO_ORDERS_GET_RECEIPT_REQUEST = OrdersGetReceiptRequest()


class OrdersGetReceiptResponse(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False
):
    receipt: Receipt = NO_RECEIPT


NO_ORDERS_GET_RECEIPT_RESPONSE = OrdersGetReceiptResponse()


class OrdersHistoryRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    cluster: str = ""
    limit: int | None = None


NO_ORDERS_HISTORY_REQUEST = OrdersHistoryRequest()


class HistoryEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    at: datetime | None = None
    reason: str = ""
    message: str = ""


NO_HISTORY_ENTRY = HistoryEntry()


class OrdersHistoryResponse(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False
):
    items: tuple[HistoryEntry, ...] = ()


NO_ORDERS_HISTORY_RESPONSE = OrdersHistoryResponse()


class RoleRunsAskRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    # id
    order: str = ""
    # hosts, network, addresses, names or platform
    step: str = ""


NO_ROLE_RUNS_ASK_REQUEST = RoleRunsAskRequest()


class RoleRunsAskResponse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    # those that nobody had asked for before
    steps: tuple[str, ...] = ()


NO_ROLE_RUNS_ASK_RESPONSE = RoleRunsAskResponse()


class RoleRunsGetRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    # id
    order: str = ""
    # answer the kubeconfig too, once the platform is there
    kubeconfig: bool = False


NO_ROLE_RUNS_GET_REQUEST = RoleRunsGetRequest()


class RoleRunStep(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    name: str = ""
    asked: bool = False
    state: StepState = StepState(0)
    # CamelCase, for machines
    reason: str = ""
    # one calm sentence
    message: str = ""
    remedy: str = ""
    detail: str = ""
    # why it does not go on by itself: in the words of the step that is stuck, this one or one it needs
    blocked: str = ""


NO_ROLE_RUN_STEP = RoleRunStep()


class RoleRunNode(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    slot: str = ""
    node_set: str = ""
    host: str = ""
    address: str = ""


NO_ROLE_RUN_NODE = RoleRunNode()


class RoleRun(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    order: str = ""
    # those that can be asked for, in the order of the road
    steps: tuple[RoleRunStep, ...] = ()
    nodes: tuple[RoleRunNode, ...] = ()
    cidr: str = ""
    gateway: str = ""
    api_address: str = ""
    ingress_address: str = ""
    api_name: str = ""
    ingress_name: str = ""
    api_url: str = ""
    kubeconfig: str = ""
    # nothing answers at the kubeconfig's address
    simulated: bool = False
    has_kubeconfig: bool = False


NO_ROLE_RUN = RoleRun()


class RoleRunsGetResponse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    object: RoleRun = NO_ROLE_RUN


NO_ROLE_RUNS_GET_RESPONSE = RoleRunsGetResponse()


class RunLogsReadRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    # an id or a name
    cluster: str = ""
    # by key ("scale/3"), kind ("scale") or part of the role ("validate"); empty: all
    run: str = ""
    # the id of the last line that is known already
    after: str = ""
    limit: int | None = None


NO_RUN_LOGS_READ_REQUEST = RunLogsReadRequest()


class LogLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    # among the lines of this cluster; to go on after
    id: str = ""
    # key of the run: "post_install", "scale/3"
    run: str = ""
    # of the role: its file in tasks/
    part: str = ""
    attempt: int = 0
    # among the lines of the run; may begin anew
    number: int = 0
    at: datetime | None = None
    # task, ok, changed, failed, skipped, output, end
    kind: str = ""
    task: str = ""
    text: str = ""


NO_LOG_LINE = LogLine()


class RunLogsReadResponse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    items: tuple[LogLine, ...] = ()
    # lines that are no longer kept, before the first of these
    missing: int = 0


NO_RUN_LOGS_READ_RESPONSE = RunLogsReadResponse()


class RunLogsWatchRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    # an id or a name
    cluster: str = ""
    # by key ("scale/3"), kind ("scale") or part of the role ("validate"); empty: all
    run: str = ""
    # the id of the last line that is known already
    after: str = ""
    follow: bool = False


NO_RUN_LOGS_WATCH_REQUEST = RunLogsWatchRequest()


class RunLogsWatchResponse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One line, or how many lines before the next are no longer kept."""

    line: LogLine = NO_LOG_LINE
    missing: int = 0


NO_RUN_LOGS_WATCH_RESPONSE = RunLogsWatchResponse()


class TemplateMistake(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    file: str = ""
    # from 1; 0 where there is none
    line: int = 0
    path: str = ""
    message: str = ""
    remedy: str = ""


NO_TEMPLATE_MISTAKE = TemplateMistake()


class TemplateSourceStatus(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    state: TemplateSourceState = TemplateSourceState(0)
    # the watched folder, or "published"
    origin: str = ""
    # id of the template it is offered as, now or last
    template: str = ""
    # of the content on offer, now or last
    digest: str = ""
    # of the content found last; what is on offer has none
    mistakes: tuple[TemplateMistake, ...] = ()
    changed_at: datetime | None = None


NO_TEMPLATE_SOURCE_STATUS = TemplateSourceStatus()


class TemplateSource(osac.Resource, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    # id: the name of the role's folder
    status: TemplateSourceStatus = NO_TEMPLATE_SOURCE_STATUS


NO_TEMPLATE_SOURCE = TemplateSource()


class TemplateSourcesListRequest(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False
):
    offset: int | None = None
    limit: int | None = None
    filter: str | None = None
    order: str | None = None


NO_TEMPLATE_SOURCES_LIST_REQUEST = TemplateSourcesListRequest()


class TemplateSourcesListResponse(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False
):
    size: int = 0
    total: int = 0
    items: tuple[TemplateSource, ...] = ()


NO_TEMPLATE_SOURCES_LIST_RESPONSE = TemplateSourcesListResponse()


class TemplateSourcesGetRequest(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False
):
    id: str = ""


NO_TEMPLATE_SOURCES_GET_REQUEST = TemplateSourcesGetRequest()


class TemplateSourcesGetResponse(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False
):
    object: TemplateSource = NO_TEMPLATE_SOURCE


NO_TEMPLATE_SOURCES_GET_RESPONSE = TemplateSourcesGetResponse()


class TemplatesGetSchemaRequest(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False
):
    # an id or a name
    template: str = ""


NO_TEMPLATES_GET_SCHEMA_REQUEST = TemplatesGetSchemaRequest()


class RoleFile(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    # below the role's folder, parted by /
    path: str = ""
    content: bytes = b""
    executable: bool = False


NO_ROLE_FILE = RoleFile()


class TemplatesPublishRequest(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False
):
    # the name of its folder
    role: str = ""
    files: tuple[RoleFile, ...] = ()


NO_TEMPLATES_PUBLISH_REQUEST = TemplatesPublishRequest()


class TemplatesPublishResponse(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False
):
    object: TemplateSource = NO_TEMPLATE_SOURCE


NO_TEMPLATES_PUBLISH_RESPONSE = TemplatesPublishResponse()
