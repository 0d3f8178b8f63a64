"""Compares what was collected from a Kubernetes hub with what is required: findings, each with its remedy. Pure.

The hub reconciler turns them into conditions; `hub check` shows all of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

import msgspec

from boatyard.kube.circuit_breaker import FAILING_REASON
from boatyard.kube.cluster_identity import OTHER_CLUSTER
from boatyard.model import hub_names
from boatyard.model.errors import BoatyardError, Refused, Unavailable
from boatyard.model.generated.osac import Hub, HubConditionType
from boatyard.resources.hubs import kubeconfigs
from boatyard.resources.hubs.check.model import (
    FAILED,
    PASSED,
    WARNED,
    ClusterPrerequisites,
    HubCheckFinding,
    HubSnapshot,
    Need,
    Rights,
    Roles,
)
from boatyard.resources.hubs.check.requirements import (
    EDA_FILE,
    EDA_SECRET_SETTING,
    LOAD_BALANCER,
    OLDEST_VERSION,
    PUBLISH_SETTING,
    SERVICE_FILE,
    STORAGE_CLASS_SETTINGS,
    is_automated,
    is_granted,
    is_hosted,
    list_needed_crds,
    list_needs,
)
from boatyard.resources.hubs.settings import (
    AUTOMATION_ACCOUNT,
    CONTEXT_SETTING,
    OPERATOR_NAME,
    get_operator_lease,
    get_system_namespace,
)

REACHABLE = HubConditionType.REACHABLE
AUTHORIZED = HubConditionType.AUTHORIZED
SUPPORTED = HubConditionType.SUPPORTED
PREPARED = HubConditionType.PREPARED
OPERATED = HubConditionType.OPERATED

EXPIRY_WARNING_PERIOD = timedelta(days=14)
LARGEST_SKEW = timedelta(seconds=5)
# Added to the duration of an expired Lease: time for a second replica to take over.
TAKEOVER_GRACE_PERIOD = timedelta(seconds=30)
_VERSION = re.compile(r"v?(\d+)\.(\d+)")
_MOST_NAMED_RIGHTS = 6  # missing rights named in a message
_REQUEST_PREFIX = re.compile(r"^(GET|POST|PUT|PATCH|DELETE) \S+: ")


def make_prepare_remedy(hub: Hub) -> str:
    return f"boatyard hub prepare {hub.metadata.name or hub.id}"


def format_settings(hub: Hub) -> str:
    """The hub's settings as JSON, for the ConfigMap that its operator reads."""
    settings = {
        "id": hub.id,
        "drivers": dict(sorted(hub.spec.drivers.items())),
        "settings": dict(sorted(hub.spec.settings.items())),
    }
    return msgspec.json.encode(settings).decode()


def evaluate_snapshot(
    hub: Hub, snapshot: HubSnapshot, roles: Roles, now: datetime
) -> list[HubCheckFinding]:
    """All findings, in the order in which one would fix them. When a different cluster answers, only that finding."""
    if is_other_cluster(hub, snapshot):
        return [_make_other_cluster_finding(hub, snapshot)]
    findings = [
        HubCheckFinding("reachable", PASSED, f"{snapshot.server} answers", condition=REACHABLE),
        _credentials(hub, snapshot, now),
        *_rights(hub, snapshot, roles),
        _version(snapshot),
        *_crds(hub, snapshot),
        _settings(hub, snapshot),
        *_operator(hub, snapshot, now),
        *_clock(snapshot, now),
    ]
    if snapshot.prerequisites is not None:
        findings += evaluate_prerequisites(hub, snapshot.prerequisites, roles)
    return findings


# --- a hub that cannot be asked ----------------------------------------------------------------

_REMEDIES = {
    "Unreachable": "see that the address is right and that this machine may reach it",
    "Timeout": "see that the address is right and that nothing on the way swallows packets",
    "CertificateNotTrusted": "put the authority of the hub's API server into the kubeconfig",
    "NotKubernetes": "give the address of the API server itself, without a path",
    "NotJson": "give the address of the API server itself; a proxy seems to answer for it",
}


def _other_cluster_remedy(hub: Hub) -> str:
    name = hub.metadata.name or hub.id
    back = f"boatyard hub credentials {name} --kubeconfig FILE with those of the cluster it was"
    return f"{back}, or register this one as another hub"


def is_other_cluster(hub: Hub, snapshot: HubSnapshot) -> bool:
    """Whether a different cluster answers than the one that was registered. False when its uid is unknown."""
    known_uid = hub.status.cluster_uid
    return bool(known_uid and snapshot.cluster_uid and snapshot.cluster_uid != known_uid)


def _make_other_cluster_finding(hub: Hub, snapshot: HubSnapshot) -> HubCheckFinding:
    what = f"what answers at {snapshot.server} is another cluster than the hub was"
    remedy = _other_cluster_remedy(hub)
    return HubCheckFinding("reachable", FAILED, what, remedy, OTHER_CLUSTER, REACHABLE)


def evaluate_failure(hub: Hub, error: BoatyardError) -> list[HubCheckFinding]:
    """The findings about a hub that did not answer or refused the request."""
    words = _REQUEST_PREFIX.sub("", str(error))
    name = hub.metadata.name or hub.id
    renew = f"boatyard hub credentials {name} --kubeconfig FILE"
    if isinstance(error, Unavailable):
        if error.reason == "BadKubeconfig":
            return [HubCheckFinding("credentials", FAILED, words, renew, error.reason, AUTHORIZED)]
        remedy = _REMEDIES.get(error.reason, "it is asked again by itself; see what ails it")
        if error.reason == OTHER_CLUSTER:
            remedy = _other_cluster_remedy(hub)
        return [HubCheckFinding("reachable", FAILED, words, remedy, error.reason, REACHABLE)]
    reachable = HubCheckFinding("reachable", PASSED, "it answers", condition=REACHABLE)
    reason = error.reason if isinstance(error, Refused) else "Refused"
    if reason == "Unauthorized":
        words = "it does not take the credentials"
    elif reason == "Forbidden":
        # Every authenticated user may normally ask for its own identity; here even that is forbidden.
        words, renew = f"it does not let us look: {words}", "bind system:basic-user to the account"
    return [reachable, HubCheckFinding("credentials", FAILED, words, renew, reason, AUTHORIZED)]


def is_circuit_open(error: BoatyardError) -> bool:
    """Whether the circuit breaker kept the request back because earlier ones failed: nothing new is known."""
    return isinstance(error, Unavailable) and error.reason == FAILING_REASON


# --- one that answers --------------------------------------------------------------------------


def _credentials(hub: Hub, snapshot: HubSnapshot, now: datetime) -> HubCheckFinding:
    identity = f"known there as {snapshot.user}" if snapshot.user else "it takes the credentials"
    ends_at = kubeconfigs.read_summary(
        hub.spec.kubeconfig, hub.spec.settings.get(CONTEXT_SETTING, ""), insecure=True
    ).expires_at
    if ends_at is not None and ends_at - now < EXPIRY_WARNING_PERIOD:
        name = hub.metadata.name or hub.id
        return HubCheckFinding(
            "credentials",
            WARNED,
            f"{identity}, until {ends_at:%Y-%m-%d %H:%M} UTC",
            f"boatyard hub credentials {name} --kubeconfig FILE",
            "EndsSoon",
            AUTHORIZED,
        )
    return HubCheckFinding("credentials", PASSED, identity, condition=AUTHORIZED)


def _version(snapshot: HubSnapshot) -> HubCheckFinding:
    oldest = ".".join(map(str, OLDEST_VERSION))
    numbers = _VERSION.match(snapshot.version)
    if numbers is None:
        what = (
            f"{snapshot.version} is no version we know" if snapshot.version else "it does not tell"
        )
        remedy = f"see that it is {oldest} or newer"
        return HubCheckFinding("version", WARNED, what, remedy, "UnknownVersion", SUPPORTED)
    if (int(numbers[1]), int(numbers[2])) < OLDEST_VERSION:
        return HubCheckFinding(
            "version",
            FAILED,
            f"its Kubernetes is {snapshot.version}, which is too old",
            f"upgrade the hub to {oldest} or newer",
            "TooOld",
            SUPPORTED,
        )
    return HubCheckFinding("version", PASSED, snapshot.version, condition=SUPPORTED)


def _rights(hub: Hub, snapshot: HubSnapshot, roles: Roles) -> Iterator[HubCheckFinding]:
    namespace = get_system_namespace(hub)
    lacking = [
        str(need) for need in _list_missing_needs(roles.service, snapshot.cluster_rights, snapshot)
    ]
    lacking += [
        f"{need} in {namespace}"
        for need in _list_missing_needs(roles.system, snapshot.system_rights, snapshot)
    ]
    if lacking:
        yield HubCheckFinding(
            "rights",
            FAILED,
            f"we may not {format_missing_rights(lacking)}",
            f"apply {SERVICE_FILE} to the hub",
            "RightsMissing",
            AUTHORIZED,
        )
    else:
        yield HubCheckFinding(
            "rights", PASSED, "all that is needed is allowed", condition=AUTHORIZED
        )
    missing_reads = [
        str(need)
        for need in _list_missing_needs(roles.discovery, snapshot.cluster_rights, snapshot)
    ]
    if missing_reads:
        yield HubCheckFinding(
            "rights to look",
            WARNED,
            f"we may not {format_missing_rights(missing_reads)}; some of what follows is not known",
            f"apply {SERVICE_FILE} to the hub",
        )


def _list_missing_needs(required: Rights, granted: Rights, snapshot: HubSnapshot) -> list[Need]:
    return [
        need
        for need in list_needs(required)
        if not is_granted(need, granted) and need not in snapshot.confirmed_needs
    ]


def _crds(hub: Hub, snapshot: HubSnapshot) -> Iterator[HubCheckFinding]:
    outdated = snapshot.prerequisites.outdated_crds if snapshot.prerequisites is not None else {}
    for crd in list_needed_crds(hub):
        check = f"crd {crd.name}"
        remedy = make_prepare_remedy(hub) if crd.is_ours else crd.remedy
        if (crd.api_version, crd.plural) not in snapshot.served_resources:
            what = f"{crd.name} is not served in version {crd.version}"
            yield HubCheckFinding(check, FAILED, what, remedy, "CrdMissing", PREPARED)
        elif outdated.get(crd.name):
            what = f"{crd.version} is served, but not as this Boatyard has it"
            yield HubCheckFinding(check, WARNED, what, remedy, "CrdOutdated", PREPARED)
        else:
            yield HubCheckFinding(check, PASSED, f"{crd.version} is served", condition=PREPARED)


def _settings(hub: Hub, snapshot: HubSnapshot) -> HubCheckFinding:
    """Whether the settings on the hub name this hub. Two registrations of one cluster would overfill it."""
    namespace = get_system_namespace(hub)
    if snapshot.has_namespace is False:
        what = f"there is no namespace {namespace}"
        return HubCheckFinding(
            "settings", FAILED, what, make_prepare_remedy(hub), "NoNamespace", PREPARED
        )
    if snapshot.settings is None:
        what = f"its settings are not in {namespace} yet"
        return HubCheckFinding(
            "settings", FAILED, what, make_prepare_remedy(hub), "NoSettings", PREPARED
        )
    other = get_registered_hub_id(snapshot.settings)
    if other and other != hub.id:
        return HubCheckFinding(
            "settings",
            FAILED,
            f"this cluster is registered as hub {other[:80]!r} already",
            f"delete that hub, or ConfigMap {hub_names.HUB_CONFIG} in {namespace} if it is gone",
            "OtherHub",
            PREPARED,
        )
    if not has_current_settings(hub, snapshot):
        what = "its settings there are older than those here"
        return HubCheckFinding(
            "settings", WARNED, what, make_prepare_remedy(hub), "OldSettings", PREPARED
        )
    return HubCheckFinding("settings", PASSED, f"in {namespace}", condition=PREPARED)


def get_registered_hub_id(config_map: object) -> str:
    """The hub id in the ConfigMap of a cluster; empty when there is none."""
    data = config_map.get("data") if isinstance(config_map, dict) else None
    try:
        settings = msgspec.json.decode((data or {}).get(hub_names.HUB_CONFIG_KEY) or "")
        return str(settings["id"])
    except (msgspec.DecodeError, KeyError, TypeError):
        return ""


def has_current_settings(hub: Hub, snapshot: HubSnapshot) -> bool:
    data = (snapshot.settings or {}).get("data") or {}
    return bool(data.get(hub_names.HUB_CONFIG_KEY) == format_settings(hub))


def _operator(hub: Hub, snapshot: HubSnapshot, now: datetime) -> Iterator[HubCheckFinding]:
    name = get_operator_lease(hub)
    if not name:
        what = "another operator carries out what is ordered"
        yield HubCheckFinding("operator", PASSED, what, condition=OPERATED)
        return
    remedy = f"see that Deployment {OPERATOR_NAME} runs in {get_system_namespace(hub)}"
    if snapshot.lease is None or snapshot.lease.renewed_at is None:
        what = f"no operator has run: there is no Lease {name}"
        yield HubCheckFinding("operator", FAILED, what, remedy, "NoOperator", OPERATED)
        return
    # By the hub's clock: ours may differ.
    silence = (snapshot.hub_time or now) - snapshot.lease.renewed_at
    if (
        not snapshot.lease.holder
        or silence > timedelta(seconds=snapshot.lease.seconds) + TAKEOVER_GRACE_PERIOD
    ):
        since = f"{snapshot.lease.renewed_at:%Y-%m-%d %H:%M:%S} UTC"
        what = f"no operator has been alive since {since}"
        yield HubCheckFinding("operator", FAILED, what, remedy, "NoOperator", OPERATED)
        return
    yield HubCheckFinding("operator", PASSED, "one is alive", condition=OPERATED)


def _clock(snapshot: HubSnapshot, now: datetime) -> Iterator[HubCheckFinding]:
    if snapshot.hub_time is None:
        return
    # The hub reports whole seconds.
    skew = snapshot.hub_time - now
    if abs(skew) <= LARGEST_SKEW:
        yield HubCheckFinding("clock", PASSED, "it is that of this machine")
        return
    way = "ahead of" if skew > timedelta(0) else "behind"
    yield HubCheckFinding(
        "clock",
        WARNED,
        f"it is {abs(skew).total_seconds():.0f} s {way} that of this machine",
        "let both be set by NTP",
    )


# --- what clusters need of a hub besides its orders: rights of others, storage, addresses -----------
# Only a thorough look collects it. Nothing here keeps orders away: it is reported as a warning.


def evaluate_prerequisites(
    hub: Hub, around: ClusterPrerequisites, roles: Roles
) -> Iterator[HubCheckFinding]:
    if get_operator_lease(hub) and roles.operator.rules:
        yield _account_rights(
            hub, "operator's rights", OPERATOR_NAME, around.operator_missing_rights
        )
    if is_automated(hub):
        if roles.automation.rules:
            lacks = around.automation_missing_rights
            lacks_by_file = None if lacks is None else {EDA_FILE: lacks}
            yield _account_rights(hub, "automation's rights", AUTOMATION_ACCOUNT, lacks_by_file)
        yield from _automation_secret(hub, around)
    if is_hosted(hub):
        yield _storage(hub, around)
        yield _evaluate_load_balancer(hub, around)


def format_missing_rights(lacking: Sequence[str]) -> str:
    more = len(lacking) - _MOST_NAMED_RIGHTS
    return ", ".join(lacking[:_MOST_NAMED_RIGHTS]) + (f" and {more} more" if more > 0 else "")


def _account_rights(
    hub: Hub, check: str, account: str, lacks: Mapping[str, Sequence[Need]] | None
) -> HubCheckFinding:
    """The finding about the rights of an account on the hub. `lacks` is by the file that grants them."""
    if lacks is None:
        return HubCheckFinding(
            check,
            WARNED,
            "we may not ask about them",
            f"apply {SERVICE_FILE}, or ask: kubectl auth can-i --list"
            f" --as=system:serviceaccount:{get_system_namespace(hub)}:{account}",
        )
    lacking = {file: needs for file, needs in lacks.items() if needs}
    if not lacking:
        return HubCheckFinding(check, PASSED, "all that it needs is allowed")
    words = [str(need) for needs in lacking.values() for need in needs]
    remedy = f"apply {' and '.join(lacking)} to the hub"
    return HubCheckFinding(check, WARNED, f"it may not {format_missing_rights(words)}", remedy)


def _automation_secret(hub: Hub, around: ClusterPrerequisites) -> Iterator[HubCheckFinding]:
    name, namespace = hub.spec.settings.get(EDA_SECRET_SETTING), get_system_namespace(hub)
    if not name:
        return
    check = "automation's secret"
    if around.has_automation_secret is None:
        yield HubCheckFinding(
            check, WARNED, "we may not see it", f"apply {SERVICE_FILE} to the hub"
        )
    elif around.has_automation_secret:
        yield HubCheckFinding(check, PASSED, f"Secret {name} is in {namespace}")
    else:
        yield HubCheckFinding(
            check,
            WARNED,
            f"there is no Secret {name} in {namespace}, which the setting {EDA_SECRET_SETTING} names",
            "create it with the key token, or change the setting",
        )


def _storage(hub: Hub, around: ClusterPrerequisites) -> HubCheckFinding:
    classes = around.storage_classes
    if classes is None:
        return HubCheckFinding("storage class", WARNED, "we may not see them")
    class_names = [
        hub.spec.settings[name] for name in STORAGE_CLASS_SETTINGS if hub.spec.settings.get(name)
    ]
    missing = [name for name in class_names if name not in classes]
    if missing:
        return HubCheckFinding(
            "storage class",
            WARNED,
            f"there is no storage class {missing[0]!r}, which the hub's settings name",
            f"there is {', '.join(sorted(classes)) or 'none'}",
        )
    if class_names:
        return HubCheckFinding("storage class", PASSED, f"{class_names[0]}, by the hub's settings")
    defaults = sorted(name for name, is_default in classes.items() if is_default)
    if not defaults:
        return HubCheckFinding(
            "storage class",
            WARNED,
            "none is the default: control planes will wait for their disks",
            f"mark one as the default, or name one as {STORAGE_CLASS_SETTINGS[0]}",
        )
    return HubCheckFinding("storage class", PASSED, f"{defaults[0]} is the default")


def _evaluate_load_balancer(hub: Hub, around: ClusterPrerequisites) -> HubCheckFinding:
    check = "load balancer"
    publish = hub.spec.settings.get(PUBLISH_SETTING) or LOAD_BALANCER
    if publish != LOAD_BALANCER:
        return HubCheckFinding(check, PASSED, f"none is needed: APIs are published by {publish}")
    if around.metallb and around.address_pools == 0:
        what = "MetalLB is there, but has no addresses to give"
        return HubCheckFinding(
            check, WARNED, what, "create an IPAddressPool and an L2Advertisement"
        )
    if around.metallb:
        return HubCheckFinding(check, PASSED, "MetalLB")
    if around.has_balanced_service:
        return HubCheckFinding(check, PASSED, "Services of that type are given addresses")
    if around.providers:
        return HubCheckFinding(check, PASSED, f"that of {', '.join(sorted(around.providers))}")
    if around.has_balanced_service is None and around.providers is None:
        return HubCheckFinding(check, WARNED, "we may not see whether there is one")
    return HubCheckFinding(
        check,
        WARNED,
        "nothing gives addresses to Services of type LoadBalancer",
        f"install MetalLB, or set {PUBLISH_SETTING} to NodePort or Route",
    )
