"""Compares what was collected from a Kubernetes hub with what is required: findings, each with its remedy. Pure.

The hub reconciler turns them into conditions; `hub check` shows all of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

import msgspec

from boatyard.kube.gate import FAILING
from boatyard.kube.identity import OTHER_CLUSTER
from boatyard.model import hub_names
from boatyard.model.errors import BoatyardError, Refused, Unavailable
from boatyard.model.generated.osac import Hub, HubConditionType
from boatyard.resources.hubs import kubeconfigs
from boatyard.resources.hubs.check.model import (
    FAILED,
    PASSED,
    WARNED,
    Finding,
    Need,
    Rights,
    Roles,
    Seen,
    Surroundings,
)
from boatyard.resources.hubs.check.requirements import (
    EDA_FILE,
    EDA_SECRET,
    LOAD_BALANCER,
    OLDEST,
    PUBLISH,
    SERVICE_FILE,
    STORAGE_CLASSES,
    is_automated,
    is_granted,
    is_hosted,
    needed_crds,
    needs_of,
)
from boatyard.resources.hubs.settings import (
    AUTOMATION,
    CONTEXT,
    OPERATOR,
    operator_lease,
    system_namespace,
)

REACHABLE = HubConditionType.REACHABLE
AUTHORIZED = HubConditionType.AUTHORIZED
SUPPORTED = HubConditionType.SUPPORTED
PREPARED = HubConditionType.PREPARED
OPERATED = HubConditionType.OPERATED

ENDS_SOON = timedelta(days=14)
MOST_SKEW = timedelta(seconds=5)
# Added to the duration of an expired Lease: time for a second replica to take over.
TAKING_OVER = timedelta(seconds=30)
_VERSION = re.compile(r"v?(\d+)\.(\d+)")
_MOST_NAMED = 6  # missing rights named in a message
_QUESTION = re.compile(r"^(GET|POST|PUT|PATCH|DELETE) \S+: ")


def prepare_remedy(hub: Hub) -> str:
    return f"boatyard hub prepare {hub.metadata.name or hub.id}"


def settings_text(hub: Hub) -> str:
    """The hub's settings as JSON, for the ConfigMap that its operator reads."""
    settings = {
        "id": hub.id,
        "drivers": dict(sorted(hub.spec.drivers.items())),
        "settings": dict(sorted(hub.spec.settings.items())),
    }
    return msgspec.json.encode(settings).decode()


def judge(hub: Hub, snapshot: Seen, roles: Roles, now: datetime) -> list[Finding]:
    """All findings, in the order in which one would fix them. When a different cluster answers, only that finding."""
    if is_other_cluster(hub, snapshot):
        return [_other_cluster(hub, snapshot)]
    findings = [
        Finding("reachable", PASSED, f"{snapshot.server} answers", condition=REACHABLE),
        _credentials(hub, snapshot, now),
        *_rights(hub, snapshot, roles),
        _version(snapshot),
        *_crds(hub, snapshot),
        _settings(hub, snapshot),
        *_operator(hub, snapshot, now),
        *_clock(snapshot, now),
    ]
    if snapshot.around is not None:
        findings += judge_surroundings(hub, snapshot.around, roles)
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


def is_other_cluster(hub: Hub, snapshot: Seen) -> bool:
    """Whether a different cluster answers than the one that was registered. False when its uid is unknown."""
    known_uid = hub.status.cluster_uid
    return bool(known_uid and snapshot.cluster_uid and snapshot.cluster_uid != known_uid)


def _other_cluster(hub: Hub, snapshot: Seen) -> Finding:
    what = f"what answers at {snapshot.server} is another cluster than the hub was"
    remedy = _other_cluster_remedy(hub)
    return Finding("reachable", FAILED, what, remedy, OTHER_CLUSTER, REACHABLE)


def judge_failure(hub: Hub, error: BoatyardError) -> list[Finding]:
    """The findings about a hub that did not answer or refused the request."""
    words = _QUESTION.sub("", str(error))
    name = hub.metadata.name or hub.id
    renew = f"boatyard hub credentials {name} --kubeconfig FILE"
    if isinstance(error, Unavailable):
        if error.reason == "BadKubeconfig":
            return [Finding("credentials", FAILED, words, renew, error.reason, AUTHORIZED)]
        remedy = _REMEDIES.get(error.reason, "it is asked again by itself; see what ails it")
        if error.reason == OTHER_CLUSTER:
            remedy = _other_cluster_remedy(hub)
        return [Finding("reachable", FAILED, words, remedy, error.reason, REACHABLE)]
    reachable = Finding("reachable", PASSED, "it answers", condition=REACHABLE)
    reason = error.reason if isinstance(error, Refused) else "Refused"
    if reason == "Unauthorized":
        words = "it does not take the credentials"
    elif reason == "Forbidden":
        # Every authenticated user may normally ask for its own identity; here even that is forbidden.
        words, renew = f"it does not let us look: {words}", "bind system:basic-user to the account"
    return [reachable, Finding("credentials", FAILED, words, renew, reason, AUTHORIZED)]


def was_not_asked(error: BoatyardError) -> bool:
    """Whether the circuit breaker kept the request back because earlier ones failed: nothing new is known."""
    return isinstance(error, Unavailable) and error.reason == FAILING


# --- one that answers --------------------------------------------------------------------------


def _credentials(hub: Hub, snapshot: Seen, now: datetime) -> Finding:
    identity = f"known there as {snapshot.user}" if snapshot.user else "it takes the credentials"
    ends_at = kubeconfigs.read(
        hub.spec.kubeconfig, hub.spec.settings.get(CONTEXT, ""), insecure=True
    ).ends_at
    if ends_at is not None and ends_at - now < ENDS_SOON:
        name = hub.metadata.name or hub.id
        return Finding(
            "credentials",
            WARNED,
            f"{identity}, until {ends_at:%Y-%m-%d %H:%M} UTC",
            f"boatyard hub credentials {name} --kubeconfig FILE",
            "EndsSoon",
            AUTHORIZED,
        )
    return Finding("credentials", PASSED, identity, condition=AUTHORIZED)


def _version(snapshot: Seen) -> Finding:
    oldest = ".".join(map(str, OLDEST))
    numbers = _VERSION.match(snapshot.version)
    if numbers is None:
        what = (
            f"{snapshot.version} is no version we know" if snapshot.version else "it does not tell"
        )
        remedy = f"see that it is {oldest} or newer"
        return Finding("version", WARNED, what, remedy, "UnknownVersion", SUPPORTED)
    if (int(numbers[1]), int(numbers[2])) < OLDEST:
        return Finding(
            "version",
            FAILED,
            f"its Kubernetes is {snapshot.version}, which is too old",
            f"upgrade the hub to {oldest} or newer",
            "TooOld",
            SUPPORTED,
        )
    return Finding("version", PASSED, snapshot.version, condition=SUPPORTED)


def _rights(hub: Hub, snapshot: Seen, roles: Roles) -> Iterator[Finding]:
    namespace = system_namespace(hub)
    lacking = [str(need) for need in _missing(roles.service, snapshot.cluster_rights, snapshot)]
    lacking += [
        f"{need} in {namespace}"
        for need in _missing(roles.system, snapshot.system_rights, snapshot)
    ]
    if lacking:
        yield Finding(
            "rights",
            FAILED,
            f"we may not {named(lacking)}",
            f"apply {SERVICE_FILE} to the hub",
            "RightsMissing",
            AUTHORIZED,
        )
    else:
        yield Finding("rights", PASSED, "all that is needed is allowed", condition=AUTHORIZED)
    missing_reads = [
        str(need) for need in _missing(roles.looking, snapshot.cluster_rights, snapshot)
    ]
    if missing_reads:
        yield Finding(
            "rights to look",
            WARNED,
            f"we may not {named(missing_reads)}; some of what follows is not known",
            f"apply {SERVICE_FILE} to the hub",
        )


def _missing(required: Rights, granted: Rights, snapshot: Seen) -> list[Need]:
    return [
        need
        for need in needs_of(required)
        if not is_granted(need, granted) and need not in snapshot.confirmed
    ]


def _crds(hub: Hub, snapshot: Seen) -> Iterator[Finding]:
    outdated = snapshot.around.outdated if snapshot.around is not None else {}
    for crd in needed_crds(hub):
        check = f"crd {crd.name}"
        remedy = prepare_remedy(hub) if crd.ours else crd.remedy
        if (crd.api, crd.plural) not in snapshot.served:
            what = f"{crd.name} is not served in version {crd.version}"
            yield Finding(check, FAILED, what, remedy, "CrdMissing", PREPARED)
        elif outdated.get(crd.name):
            what = f"{crd.version} is served, but not as this Boatyard has it"
            yield Finding(check, WARNED, what, remedy, "CrdOutdated", PREPARED)
        else:
            yield Finding(check, PASSED, f"{crd.version} is served", condition=PREPARED)


def _settings(hub: Hub, snapshot: Seen) -> Finding:
    """Whether the settings on the hub name this hub. Two registrations of one cluster would overfill it."""
    namespace = system_namespace(hub)
    if snapshot.namespace is False:
        what = f"there is no namespace {namespace}"
        return Finding("settings", FAILED, what, prepare_remedy(hub), "NoNamespace", PREPARED)
    if snapshot.settings is None:
        what = f"its settings are not in {namespace} yet"
        return Finding("settings", FAILED, what, prepare_remedy(hub), "NoSettings", PREPARED)
    other = registered_as(snapshot.settings)
    if other and other != hub.id:
        return Finding(
            "settings",
            FAILED,
            f"this cluster is registered as hub {other[:80]!r} already",
            f"delete that hub, or ConfigMap {hub_names.HUB_CONFIG} in {namespace} if it is gone",
            "OtherHub",
            PREPARED,
        )
    if not is_current(hub, snapshot):
        what = "its settings there are older than those here"
        return Finding("settings", WARNED, what, prepare_remedy(hub), "OldSettings", PREPARED)
    return Finding("settings", PASSED, f"in {namespace}", condition=PREPARED)


def registered_as(config_map: object) -> str:
    """The hub id in the ConfigMap of a cluster; empty when there is none."""
    data = config_map.get("data") if isinstance(config_map, dict) else None
    try:
        settings = msgspec.json.decode((data or {}).get(hub_names.HUB_CONFIG_KEY) or "")
        return str(settings["id"])
    except (msgspec.DecodeError, KeyError, TypeError):
        return ""


def is_current(hub: Hub, snapshot: Seen) -> bool:
    data = (snapshot.settings or {}).get("data") or {}
    return bool(data.get(hub_names.HUB_CONFIG_KEY) == settings_text(hub))


def _operator(hub: Hub, snapshot: Seen, now: datetime) -> Iterator[Finding]:
    name = operator_lease(hub)
    if not name:
        what = "another operator carries out what is ordered"
        yield Finding("operator", PASSED, what, condition=OPERATED)
        return
    remedy = f"see that Deployment {OPERATOR} runs in {system_namespace(hub)}"
    if snapshot.lease is None or snapshot.lease.renewed_at is None:
        what = f"no operator has run: there is no Lease {name}"
        yield Finding("operator", FAILED, what, remedy, "NoOperator", OPERATED)
        return
    # By the hub's clock: ours may differ.
    silence = (snapshot.hub_time or now) - snapshot.lease.renewed_at
    if (
        not snapshot.lease.holder
        or silence > timedelta(seconds=snapshot.lease.seconds) + TAKING_OVER
    ):
        since = f"{snapshot.lease.renewed_at:%Y-%m-%d %H:%M:%S} UTC"
        what = f"no operator has been alive since {since}"
        yield Finding("operator", FAILED, what, remedy, "NoOperator", OPERATED)
        return
    yield Finding("operator", PASSED, "one is alive", condition=OPERATED)


def _clock(snapshot: Seen, now: datetime) -> Iterator[Finding]:
    if snapshot.hub_time is None:
        return
    # The hub reports whole seconds.
    skew = snapshot.hub_time - now
    if abs(skew) <= MOST_SKEW:
        yield Finding("clock", PASSED, "it is that of this machine")
        return
    way = "ahead of" if skew > timedelta(0) else "behind"
    yield Finding(
        "clock",
        WARNED,
        f"it is {abs(skew).total_seconds():.0f} s {way} that of this machine",
        "let both be set by NTP",
    )


# --- what clusters need of a hub besides its orders: rights of others, storage, addresses -----------
# Only a thorough look collects it. Nothing here keeps orders away: it is reported as a warning.


def judge_surroundings(hub: Hub, around: Surroundings, roles: Roles) -> Iterator[Finding]:
    if operator_lease(hub) and roles.operator.rules:
        yield _account_rights(hub, "operator's rights", OPERATOR, around.operator_lacks)
    if is_automated(hub):
        if roles.automation.rules:
            lacks = around.automation_lacks
            lacks_by_file = None if lacks is None else {EDA_FILE: lacks}
            yield _account_rights(hub, "automation's rights", AUTOMATION, lacks_by_file)
        yield from _automation_secret(hub, around)
    if is_hosted(hub):
        yield _storage(hub, around)
        yield _balancer(hub, around)


def named(lacking: Sequence[str]) -> str:
    more = len(lacking) - _MOST_NAMED
    return ", ".join(lacking[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _account_rights(
    hub: Hub, check: str, account: str, lacks: Mapping[str, Sequence[Need]] | None
) -> Finding:
    """The finding about the rights of an account on the hub. `lacks` is by the file that grants them."""
    if lacks is None:
        return Finding(
            check,
            WARNED,
            "we may not ask about them",
            f"apply {SERVICE_FILE}, or ask: kubectl auth can-i --list"
            f" --as=system:serviceaccount:{system_namespace(hub)}:{account}",
        )
    lacking = {file: needs for file, needs in lacks.items() if needs}
    if not lacking:
        return Finding(check, PASSED, "all that it needs is allowed")
    words = [str(need) for needs in lacking.values() for need in needs]
    remedy = f"apply {' and '.join(lacking)} to the hub"
    return Finding(check, WARNED, f"it may not {named(words)}", remedy)


def _automation_secret(hub: Hub, around: Surroundings) -> Iterator[Finding]:
    name, namespace = hub.spec.settings.get(EDA_SECRET), system_namespace(hub)
    if not name:
        return
    check = "automation's secret"
    if around.automation_secret is None:
        yield Finding(check, WARNED, "we may not see it", f"apply {SERVICE_FILE} to the hub")
    elif around.automation_secret:
        yield Finding(check, PASSED, f"Secret {name} is in {namespace}")
    else:
        yield Finding(
            check,
            WARNED,
            f"there is no Secret {name} in {namespace}, which the setting {EDA_SECRET} names",
            "create it with the key token, or change the setting",
        )


def _storage(hub: Hub, around: Surroundings) -> Finding:
    classes = around.storage_classes
    if classes is None:
        return Finding("storage class", WARNED, "we may not see them")
    class_names = [
        hub.spec.settings[name] for name in STORAGE_CLASSES if hub.spec.settings.get(name)
    ]
    missing = [name for name in class_names if name not in classes]
    if missing:
        return Finding(
            "storage class",
            WARNED,
            f"there is no storage class {missing[0]!r}, which the hub's settings name",
            f"there is {', '.join(sorted(classes)) or 'none'}",
        )
    if class_names:
        return Finding("storage class", PASSED, f"{class_names[0]}, by the hub's settings")
    defaults = sorted(name for name, is_default in classes.items() if is_default)
    if not defaults:
        return Finding(
            "storage class",
            WARNED,
            "none is the default: control planes will wait for their disks",
            f"mark one as the default, or name one as {STORAGE_CLASSES[0]}",
        )
    return Finding("storage class", PASSED, f"{defaults[0]} is the default")


def _balancer(hub: Hub, around: Surroundings) -> Finding:
    check = "load balancer"
    publish = hub.spec.settings.get(PUBLISH) or LOAD_BALANCER
    if publish != LOAD_BALANCER:
        return Finding(check, PASSED, f"none is needed: APIs are published by {publish}")
    if around.metallb and around.address_pools == 0:
        what = "MetalLB is there, but has no addresses to give"
        return Finding(check, WARNED, what, "create an IPAddressPool and an L2Advertisement")
    if around.metallb:
        return Finding(check, PASSED, "MetalLB")
    if around.balanced:
        return Finding(check, PASSED, "Services of that type are given addresses")
    if around.providers:
        return Finding(check, PASSED, f"that of {', '.join(sorted(around.providers))}")
    if around.balanced is None and around.providers is None:
        return Finding(check, WARNED, "we may not see whether there is one")
    return Finding(
        check,
        WARNED,
        "nothing gives addresses to Services of type LoadBalancer",
        f"install MetalLB, or set {PUBLISH} to NodePort or Route",
    )
