"""Who may do what on a hub, asked of the hub itself. Called by `survey`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from boatyard.kube.client import KubeClient
from boatyard.model.errors import Refused
from boatyard.model.generated.osac import Hub
from boatyard.resources.hubs.check.asking import together
from boatyard.resources.hubs.check.model import Need, Rights, Roles
from boatyard.resources.hubs.check.requirements import (
    EDA_FILE,
    HOSTED_FILE,
    OPERATOR_FILE,
    is_automated,
    is_hosted,
    needs_of,
)
from boatyard.resources.hubs.settings import OPERATOR, operator_lease, system_namespace

REVIEWS = "/apis/authorization.k8s.io/v1"
_AT_ONCE = 8


async def reviewed(
    client: KubeClient, needs: Sequence[Need], namespace: str, user: str = ""
) -> list[Need]:
    """Those that are granted to us, or to the user named."""
    kind = "SubjectAccessReview" if user else "SelfSubjectAccessReview"

    async def is_allowed(need: Need) -> bool:
        resource, _, part = need.resource.partition("/")
        asked = {
            "group": need.group,
            "resource": resource,
            "subresource": part,
            "verb": need.verb,
            "name": need.name,
            "namespace": namespace,
        }
        spec: dict[str, Any] = {"resourceAttributes": asked}
        if user:
            account = user.split(":")
            spec |= {
                "user": user,
                "groups": ["system:serviceaccounts", f"system:serviceaccounts:{account[2]}"],
            }
        body = {"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec}
        said = await client.call("POST", f"{REVIEWS}/{kind.lower()}s", body=body)
        return bool((said.get("status") or {}).get("allowed"))

    granted: list[Need] = []
    for start in range(0, len(needs), _AT_ONCE):
        part = needs[start : start + _AT_ONCE]
        answers = await together(*(is_allowed(need) for need in part))
        granted += [need for need, allowed in zip(part, answers, strict=True) if allowed]
    return granted


async def operator_lacks(
    client: KubeClient, hub: Hub, roles: Roles
) -> Mapping[str, Sequence[Need]] | None:
    """Which of its rights the operator's service account has not, by the file that grants them."""
    if not operator_lease(hub):
        return {}
    system = system_namespace(hub)
    wanted = [(OPERATOR_FILE, roles.operator, ""), (OPERATOR_FILE, roles.operator_system, system)]
    if is_hosted(hub):
        wanted.append((HOSTED_FILE, roles.operator_hosted, ""))
    if is_automated(hub):
        wanted.append((EDA_FILE, roles.operator_eda, system))
    lacks: dict[str, list[Need]] = {}
    for file, rights, namespace in wanted:
        found = await lacks_of(client, hub, OPERATOR, rights, namespace)
        if found is None:
            return None
        lacks.setdefault(file, []).extend(found)
    return lacks


async def lacks_of(
    client: KubeClient, hub: Hub, account: str, rights: Rights, namespace: str = ""
) -> list[Need] | None:
    """What a service account in our namespace may not do of this. None when we may not ask about others."""
    user = f"system:serviceaccount:{system_namespace(hub)}:{account}"
    needs = list(needs_of(rights))
    try:
        granted = set(await reviewed(client, needs, namespace, user))
    except Refused:
        return None
    return [need for need in needs if need not in granted]
