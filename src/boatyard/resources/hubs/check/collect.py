"""Collects what a hub check needs from a Kubernetes hub: a dozen requests that change nothing. Called by `run`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

import msgspec

from boatyard.kube.client import KubeClient
from boatyard.kube.cluster_identity import read_cluster_uid
from boatyard.kube.kinds import (
    CONFIG_MAPS,
    CRDS,
    LEASES,
    NAMESPACES,
    NODES,
    SECRETS,
    SERVICES,
    KubeKind,
)
from boatyard.model import hub_names
from boatyard.model.errors import NotFound, Refused, Unavailable
from boatyard.model.generated.osac import Hub
from boatyard.resources.hubs.check.model import (
    ClusterPrerequisites,
    HubSnapshot,
    Manifest,
    Need,
    OperatorLease,
    Rights,
    Roles,
)
from boatyard.resources.hubs.check.requirements import (
    ADDRESS_POOLS,
    EDA_FILE,
    EDA_SECRET_SETTING,
    HOSTED_FILE,
    OPERATOR_FILE,
    OUR_CRDS,
    is_automated,
    is_granted,
    is_hosted,
    list_needed_crds,
    list_needs,
)
from boatyard.resources.hubs.settings import (
    AUTOMATION_ACCOUNT,
    OPERATOR_NAME,
    get_operator_lease,
    get_system_namespace,
)

T = TypeVar("T")

STORAGE_CLASSES = KubeKind("storage.k8s.io", "v1", "storageclasses", "StorageClass", False)
_DEFAULT_CLASS_ANNOTATION = "storageclass.kubernetes.io/is-default-class"
_POOLS = KubeKind(
    ADDRESS_POOLS.group, ADDRESS_POOLS.version, ADDRESS_POOLS.plural, "IPAddressPool", True
)
# No such namespace need exist: a right in it is a right in every namespace.
_ANY_NAMESPACE = "boatyard-anywhere"
REVIEWS_PATH = "/apis/authorization.k8s.io/v1"
_MAX_CONCURRENT_REVIEWS = 8  # reviews


async def collect_snapshot(
    client: KubeClient, hub: Hub, roles: Roles, *, crds: Sequence[Manifest] = (), thorough: bool
) -> HubSnapshot:
    """Reads the state of the hub. With `thorough` also reads what clusters will need, compares our CRDs with `crds`,
    and reviews the operator's rights.

    Raises Unavailable when the hub does not answer, Refused when it does not accept us.
    """
    started = asyncio.get_running_loop().time()
    version = await _version(client)
    took = asyncio.get_running_loop().time() - started
    user, hub_time = await _read_identity(client)
    namespace = get_system_namespace(hub)
    (
        uid,
        cluster_rights,
        system_rights,
        served,
        namespace_object,
        settings,
        lease,
    ) = await gather_all(
        _cluster_uid(client),
        _rights(client, _ANY_NAMESPACE),
        _rights(client, namespace),
        _served(client, hub),
        fetch_optional(client.get(NAMESPACES, namespace)),
        fetch_optional(client.get(CONFIG_MAPS, hub_names.HUB_CONFIG, namespace)),
        _lease(client, hub),
    )
    return HubSnapshot(
        server=client.config.server,
        response_seconds=took,
        version=version,
        cluster_uid=uid,
        user=user,
        hub_time=hub_time,
        cluster_rights=cluster_rights,
        system_rights=system_rights,
        confirmed_needs=await _confirm_needs(
            client, roles, cluster_rights, system_rights, namespace
        ),
        served_resources=served,
        has_namespace=None
        if isinstance(namespace_object, Refused)
        else namespace_object is not None,
        settings=None if isinstance(settings, Refused) else settings,
        lease=lease,
        prerequisites=await _collect_prerequisites(client, hub, roles, crds, served)
        if thorough
        else None,
    )


async def _version(client: KubeClient) -> str:
    try:
        response = await client.call("GET", "/version")
    except NotFound as error:
        raise _make_not_kubernetes_error(client) from error
    except Refused as error:
        if error.reason == "Forbidden":
            return ""
        raise
    if not isinstance(response, dict) or not isinstance(response.get("gitVersion"), str):
        raise _make_not_kubernetes_error(client)
    return str(response["gitVersion"])


def _make_not_kubernetes_error(client: KubeClient) -> Unavailable:
    return Unavailable(
        f"what answers at {client.config.server} is no Kubernetes API", reason="NotKubernetes"
    )


async def _read_identity(client: KubeClient) -> tuple[str, datetime | None]:
    """Our user name on the hub, and the hub's time. The first request that anonymous callers may not make."""
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    try:
        response = await client.call(
            "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", body=body
        )
    except NotFound:
        return "", None  # older than 1.28; the check of the version reports that
    user = ((response.get("status") or {}).get("userInfo") or {}).get("username")
    return str(user or ""), _parse_time((response.get("metadata") or {}).get("creationTimestamp"))


async def _cluster_uid(client: KubeClient) -> str:
    try:
        return await read_cluster_uid(client)
    except (NotFound, Refused):
        return ""


async def _rights(client: KubeClient, namespace: str) -> Rights:
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": namespace},
    }
    response = await client.call("POST", f"{REVIEWS_PATH}/selfsubjectrulesreviews", body=body)
    status = response.get("status") or {}
    return Rights(tuple(status.get("resourceRules") or ()), bool(status.get("incomplete")))


async def _confirm_needs(
    client: KubeClient, roles: Roles, cluster: Rights, system: Rights, namespace: str
) -> frozenset[Need]:
    """If the hub cannot list all granted rights, reviews those that seem to be missing one by one."""
    confirmed_needs: set[Need] = set()
    for rights, granted, review_namespace in (
        (roles.service, cluster, ""),
        (roles.discovery, cluster, ""),
        (roles.system, system, namespace),
    ):
        if granted.incomplete:
            unsure = [need for need in list_needs(rights) if not is_granted(need, granted)]
            confirmed_needs.update(await review_needs(client, unsure, review_namespace))
    return frozenset(confirmed_needs)


async def _served(client: KubeClient, hub: Hub) -> frozenset[tuple[str, str]]:
    """Which of the kinds that we may need the hub serves. Every authenticated user may use discovery."""
    apis = sorted({crd.api_version for crd in (*list_needed_crds(hub), ADDRESS_POOLS)})
    answers = await gather_all(
        *(fetch_optional(client.call("GET", f"/apis/{api}")) for api in apis)
    )
    return frozenset(
        (api, str(resource.get("name")))
        for api, response in zip(apis, answers, strict=True)
        if isinstance(response, dict)
        for resource in response.get("resources") or ()
    )


async def _lease(client: KubeClient, hub: Hub) -> OperatorLease | None:
    name = get_operator_lease(hub)
    if not name:
        return None
    lease = await fetch_optional(client.get(LEASES, name, get_system_namespace(hub)))
    if not isinstance(lease, dict):
        return None
    spec = lease.get("spec") or {}
    return OperatorLease(
        holder=str(spec.get("holderIdentity") or ""),
        renewed_at=_parse_time(spec.get("renewTime")),
        seconds=int(spec.get("leaseDurationSeconds") or 0),
    )


# --- a thorough look ---------------------------------------------------------------------------


async def _collect_prerequisites(
    client: KubeClient,
    hub: Hub,
    roles: Roles,
    crds: Sequence[Manifest],
    served: frozenset[tuple[str, str]],
) -> ClusterPrerequisites:
    metallb = (ADDRESS_POOLS.api_version, ADDRESS_POOLS.plural) in served
    classes, pools, services, nodes, outdated, lacks, automation = await gather_all(
        list_optional(client, STORAGE_CLASSES),
        list_optional(client, _POOLS) if metallb else return_none(),
        list_optional(client, SERVICES, fields="spec.type=LoadBalancer"),
        list_optional(client, NODES),
        _find_outdated_crds(client, crds),
        find_operator_missing_rights(client, hub, roles),
        _check_automation(client, hub, roles),
    )
    return ClusterPrerequisites(
        storage_classes=None
        if classes is None
        else {
            storage_class["metadata"]["name"]: _is_default(storage_class)
            for storage_class in classes
        },
        metallb=metallb,
        address_pools=None if pools is None else len(pools),
        has_balanced_service=None if services is None else any(map(_has_address, services)),
        providers=None if nodes is None else frozenset(_list_cloud_providers(nodes)),
        operator_missing_rights=lacks,
        automation_missing_rights=automation[0],
        has_automation_secret=automation[1],
        outdated_crds=outdated,
    )


async def _check_automation(
    client: KubeClient, hub: Hub, roles: Roles
) -> tuple[Sequence[Need] | None, bool | None]:
    """The rights that the playbooks' account lacks, and whether their Secret exists. Its content is not kept."""
    if not is_automated(hub):
        return (), None
    lacks = await find_missing_rights(client, hub, AUTOMATION_ACCOUNT, roles.automation)
    name = hub.spec.settings.get(EDA_SECRET_SETTING)
    if not name:
        return lacks, None
    secret = await fetch_optional(client.get(SECRETS, name, get_system_namespace(hub)))
    return lacks, None if isinstance(secret, Refused) else secret is not None


async def _find_outdated_crds(client: KubeClient, crds: Sequence[Manifest]) -> dict[str, bool]:
    """For each of our CRDs that exists and that we may read: whether it differs from the one in `crds`."""
    ours = {crd["metadata"]["name"]: crd for crd in crds}
    names = [crd.name for crd in OUR_CRDS if crd.name in ours]
    answers = await gather_all(*(fetch_optional(client.get(CRDS, name)) for name in names))
    return {
        name: extract_schemas(installed_crd) != extract_schemas(ours[name])
        for name, installed_crd in zip(names, answers, strict=True)
        if isinstance(installed_crd, dict)
    }


def extract_schemas(crd: Manifest) -> dict[str, Any]:
    """The parts of a CRD that we compare, by version: served, schema and subresources."""
    return {
        str(version.get("name")): (
            bool(version.get("served")),
            version.get("schema"),
            version.get("subresources"),
        )
        for version in (crd.get("spec") or {}).get("versions") or ()
    }


def _is_default(storage_class: Manifest) -> bool:
    annotations = storage_class["metadata"].get("annotations") or {}
    return bool(annotations.get(_DEFAULT_CLASS_ANNOTATION) == "true")


def _has_address(service: Manifest) -> bool:
    return bool(((service.get("status") or {}).get("loadBalancer") or {}).get("ingress"))


def _list_cloud_providers(nodes: Iterable[Manifest]) -> set[str]:
    """The cloud providers of the nodes: a cloud's controller provides load balancers."""
    id_parts = {
        str((node.get("spec") or {}).get("providerID") or "").partition("://") for node in nodes
    }
    bare = ("", "baremetalhost", "kind", "k3s")
    return {cloud for cloud, separator, _ in id_parts if separator and cloud not in bare}


def _parse_time(text: Any) -> datetime | None:
    try:
        return msgspec.convert(text, datetime)
    except msgspec.ValidationError:
        return None


# --- who may do what -------------------------------------------------------------------------


async def review_needs(
    client: KubeClient, needs: Sequence[Need], namespace: str, user: str = ""
) -> list[Need]:
    """Returns the needs that are granted to us, or to `user`."""
    kind = "SubjectAccessReview" if user else "SelfSubjectAccessReview"

    async def is_allowed(need: Need) -> bool:
        resource, _, part = need.resource.partition("/")
        attributes = {
            "group": need.group,
            "resource": resource,
            "subresource": part,
            "verb": need.verb,
            "name": need.name,
            "namespace": namespace,
        }
        spec: dict[str, Any] = {"resourceAttributes": attributes}
        if user:
            account = user.split(":")
            spec |= {
                "user": user,
                "groups": ["system:serviceaccounts", f"system:serviceaccounts:{account[2]}"],
            }
        body = {"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec}
        response = await client.call("POST", f"{REVIEWS_PATH}/{kind.lower()}s", body=body)
        return bool((response.get("status") or {}).get("allowed"))

    granted: list[Need] = []
    for start in range(0, len(needs), _MAX_CONCURRENT_REVIEWS):
        part = needs[start : start + _MAX_CONCURRENT_REVIEWS]
        answers = await gather_all(*(is_allowed(need) for need in part))
        granted += [need for need, allowed in zip(part, answers, strict=True) if allowed]
    return granted


async def find_operator_missing_rights(
    client: KubeClient, hub: Hub, roles: Roles
) -> Mapping[str, Sequence[Need]] | None:
    """The rights that the operator's service account lacks, by the file that grants them; None when unknown."""
    if not get_operator_lease(hub):
        return {}
    system = get_system_namespace(hub)
    required_rights = [
        (OPERATOR_FILE, roles.operator, ""),
        (OPERATOR_FILE, roles.operator_system, system),
    ]
    if is_hosted(hub):
        required_rights.append((HOSTED_FILE, roles.operator_hosted, ""))
    if is_automated(hub):
        required_rights.append((EDA_FILE, roles.operator_eda, system))
    lacks: dict[str, list[Need]] = {}
    for file, rights, namespace in required_rights:
        missing_needs = await find_missing_rights(client, hub, OPERATOR_NAME, rights, namespace)
        if missing_needs is None:
            return None
        lacks.setdefault(file, []).extend(missing_needs)
    return lacks


async def find_missing_rights(
    client: KubeClient, hub: Hub, account: str, rights: Rights, namespace: str = ""
) -> list[Need] | None:
    """Which of these rights a service account in our namespace lacks. None when we may not review others."""
    user = f"system:serviceaccount:{get_system_namespace(hub)}:{account}"
    needs = list(list_needs(rights))
    try:
        granted = set(await review_needs(client, needs, namespace, user))
    except Refused:
        return None
    return [need for need in needs if need not in granted]


# --- requests --------------------------------------------------------------------------------


async def fetch_optional(request: Awaitable[Any]) -> Any:
    """The answer, None when the object does not exist, the Refused error when we may not read it."""
    try:
        return await request
    except NotFound:
        return None
    except Refused as error:
        return error


async def list_optional(client: KubeClient, kind: KubeKind, fields: str = "") -> list[Any] | None:
    """All objects of a kind; None when we may not list them."""
    try:
        return (await client.list(kind, fields=fields)).items
    except (Refused, NotFound):
        return None


async def return_none() -> None:
    return None


async def gather_all(*requests: Awaitable[Any]) -> list[Any]:
    """Runs all requests concurrently and returns their answers. The first failure cancels the others."""

    async def wait_for(request: Awaitable[Any]) -> Any:
        return await request

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(wait_for(request)) for request in requests]
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [task.result() for task in tasks]
