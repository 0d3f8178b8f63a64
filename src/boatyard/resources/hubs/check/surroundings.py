"""What clusters will need of a hub besides its orders: who carries them out, storage, addresses. Pure.

Called by `judging` for a thorough look. Nothing here keeps orders away: it is told as a warning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from boatyard.model.generated.osac import Hub
from boatyard.resources.hubs.check.model import Need, Roles, Surroundings
from boatyard.resources.hubs.check.report import PASSED, WARNED, Finding
from boatyard.resources.hubs.check.requirements import (
    EDA_FILE,
    EDA_SECRET,
    LOAD_BALANCER,
    PUBLISH,
    SERVICE_FILE,
    STORAGE_CLASSES,
    is_automated,
    is_hosted,
)
from boatyard.resources.hubs.settings import (
    AUTOMATION,
    OPERATOR,
    operator_lease,
    system_namespace,
)

_MOST_NAMED = 6  # of what is missing


def judge_surroundings(hub: Hub, around: Surroundings, roles: Roles) -> Iterator[Finding]:
    if operator_lease(hub) and roles.operator.rules:
        yield _rights(hub, "operator's rights", OPERATOR, around.operator_lacks)
    if is_automated(hub):
        if roles.automation.rules:
            lacks = around.automation_lacks
            told = None if lacks is None else {EDA_FILE: lacks}
            yield _rights(hub, "automation's rights", AUTOMATION, told)
        yield from _automation_secret(hub, around)
    if is_hosted(hub):
        yield _storage(hub, around)
        yield _balancer(hub, around)


def named(lacking: Sequence[str]) -> str:
    more = len(lacking) - _MOST_NAMED
    return ", ".join(lacking[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _rights(
    hub: Hub, check: str, account: str, lacks: Mapping[str, Sequence[Need]] | None
) -> Finding:
    """Of an account on the hub. What it lacks is by the file that grants it."""
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
    named = [hub.spec.settings[name] for name in STORAGE_CLASSES if hub.spec.settings.get(name)]
    gone = [name for name in named if name not in classes]
    if gone:
        return Finding(
            "storage class",
            WARNED,
            f"there is no storage class {gone[0]!r}, which the hub's settings name",
            f"there is {', '.join(sorted(classes)) or 'none'}",
        )
    if named:
        return Finding("storage class", PASSED, f"{named[0]}, by the hub's settings")
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
