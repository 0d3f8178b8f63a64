"""Collects what a hub check needs from a Kubernetes hub: a dozen requests that change nothing. Called by `run`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

import msgspec

from boatyard.kube.client import KubeClient
from boatyard.kube.identity import cluster_uid
from boatyard.kube.kinds import (
    CONFIG_MAPS,
    CRDS,
    LEASES,
    NAMESPACES,
    NODES,
    SECRETS,
    SERVICES,
    Kind,
)
from boatyard.model import hub_names
from boatyard.model.errors import NotFound, Refused, Unavailable
from boatyard.model.generated.osac import Hub
from boatyard.resources.hubs.check.model import (
    Lease,
    Manifest,
    Need,
    Rights,
    Roles,
    Seen,
    Surroundings,
)
from boatyard.resources.hubs.check.requirements import (
    ADDRESS_POOLS,
    EDA_FILE,
    EDA_SECRET,
    HOSTED_FILE,
    OPERATOR_FILE,
    OURS,
    is_automated,
    is_granted,
    is_hosted,
    needed_crds,
    needs_of,
)
from boatyard.resources.hubs.settings import (
    AUTOMATION,
    OPERATOR,
    operator_lease,
    system_namespace,
)

T = TypeVar("T")

STORAGE_CLASSES = Kind("storage.k8s.io", "v1", "storageclasses", "StorageClass", False)
_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
_POOLS = Kind(
    ADDRESS_POOLS.group, ADDRESS_POOLS.version, ADDRESS_POOLS.plural, "IPAddressPool", True
)
# No such namespace need exist: a right in it is a right in every namespace.
_ANYWHERE = "boatyard-anywhere"
REVIEWS = "/apis/authorization.k8s.io/v1"
_AT_ONCE = 8  # reviews


async def survey(
    client: KubeClient, hub: Hub, roles: Roles, *, crds: Sequence[Manifest] = (), thorough: bool
) -> Seen:
    """Reads the state of the hub. With `thorough` also reads what clusters will need, compares our CRDs with `crds`,
    and reviews the operator's rights.

    Raises Unavailable when the hub does not answer, Refused when it does not accept us.
    """
    started = asyncio.get_running_loop().time()
    version = await _version(client)
    took = asyncio.get_running_loop().time() - started
    user, hub_time = await _whoami(client)
    namespace = system_namespace(hub)
    uid, cluster_rights, system_rights, served, namespace_object, settings, lease = await together(
        _cluster_uid(client),
        _rights(client, _ANYWHERE),
        _rights(client, namespace),
        _served(client, hub),
        maybe(client.get(NAMESPACES, namespace)),
        maybe(client.get(CONFIG_MAPS, hub_names.HUB_CONFIG, namespace)),
        _lease(client, hub),
    )
    return Seen(
        server=client.config.server,
        took=took,
        version=version,
        cluster_uid=uid,
        user=user,
        hub_time=hub_time,
        cluster_rights=cluster_rights,
        system_rights=system_rights,
        confirmed=await _confirmed(client, roles, cluster_rights, system_rights, namespace),
        served=served,
        namespace=None if isinstance(namespace_object, Refused) else namespace_object is not None,
        settings=None if isinstance(settings, Refused) else settings,
        lease=lease,
        around=await _surroundings(client, hub, roles, crds, served) if thorough else None,
    )


async def _version(client: KubeClient) -> str:
    try:
        response = await client.call("GET", "/version")
    except NotFound as error:
        raise _no_kubernetes(client) from error
    except Refused as error:
        if error.reason == "Forbidden":
            return ""
        raise
    if not isinstance(response, dict) or not isinstance(response.get("gitVersion"), str):
        raise _no_kubernetes(client)
    return str(response["gitVersion"])


def _no_kubernetes(client: KubeClient) -> Unavailable:
    return Unavailable(
        f"what answers at {client.config.server} is no Kubernetes API", reason="NotKubernetes"
    )


async def _whoami(client: KubeClient) -> tuple[str, datetime | None]:
    """Our user name on the hub, and the hub's time. The first request that anonymous callers may not make."""
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    try:
        response = await client.call(
            "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", body=body
        )
    except NotFound:
        return "", None  # older than 1.28; the check of the version reports that
    user = ((response.get("status") or {}).get("userInfo") or {}).get("username")
    return str(user or ""), _moment((response.get("metadata") or {}).get("creationTimestamp"))


async def _cluster_uid(client: KubeClient) -> str:
    try:
        return await cluster_uid(client)
    except (NotFound, Refused):
        return ""


async def _rights(client: KubeClient, namespace: str) -> Rights:
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": namespace},
    }
    response = await client.call("POST", f"{REVIEWS}/selfsubjectrulesreviews", body=body)
    status = response.get("status") or {}
    return Rights(tuple(status.get("resourceRules") or ()), bool(status.get("incomplete")))


async def _confirmed(
    client: KubeClient, roles: Roles, cluster: Rights, system: Rights, namespace: str
) -> frozenset[Need]:
    """If the hub cannot list all granted rights, reviews those that seem to be missing one by one."""
    confirmed_needs: set[Need] = set()
    for rights, granted, review_namespace in (
        (roles.service, cluster, ""),
        (roles.looking, cluster, ""),
        (roles.system, system, namespace),
    ):
        if granted.incomplete:
            unsure = [need for need in needs_of(rights) if not is_granted(need, granted)]
            confirmed_needs.update(await reviewed(client, unsure, review_namespace))
    return frozenset(confirmed_needs)


async def _served(client: KubeClient, hub: Hub) -> frozenset[tuple[str, str]]:
    """Which of the kinds that we may need the hub serves. Every authenticated user may use discovery."""
    apis = sorted({crd.api for crd in (*needed_crds(hub), ADDRESS_POOLS)})
    answers = await together(*(maybe(client.call("GET", f"/apis/{api}")) for api in apis))
    return frozenset(
        (api, str(resource.get("name")))
        for api, response in zip(apis, answers, strict=True)
        if isinstance(response, dict)
        for resource in response.get("resources") or ()
    )


async def _lease(client: KubeClient, hub: Hub) -> Lease | None:
    name = operator_lease(hub)
    if not name:
        return None
    lease = await maybe(client.get(LEASES, name, system_namespace(hub)))
    if not isinstance(lease, dict):
        return None
    spec = lease.get("spec") or {}
    return Lease(
        holder=str(spec.get("holderIdentity") or ""),
        renewed_at=_moment(spec.get("renewTime")),
        seconds=int(spec.get("leaseDurationSeconds") or 0),
    )


# --- a thorough look ---------------------------------------------------------------------------


async def _surroundings(
    client: KubeClient,
    hub: Hub,
    roles: Roles,
    crds: Sequence[Manifest],
    served: frozenset[tuple[str, str]],
) -> Surroundings:
    metallb = (ADDRESS_POOLS.api, ADDRESS_POOLS.plural) in served
    classes, pools, services, nodes, outdated, lacks, automation = await together(
        listed(client, STORAGE_CLASSES),
        listed(client, _POOLS) if metallb else nothing(),
        listed(client, SERVICES, fields="spec.type=LoadBalancer"),
        listed(client, NODES),
        _outdated(client, crds),
        operator_lacks(client, hub, roles),
        _automation(client, hub, roles),
    )
    return Surroundings(
        storage_classes=None
        if classes is None
        else {
            storage_class["metadata"]["name"]: _is_default(storage_class)
            for storage_class in classes
        },
        metallb=metallb,
        address_pools=None if pools is None else len(pools),
        balanced=None if services is None else any(map(_has_address, services)),
        providers=None if nodes is None else frozenset(_providers(nodes)),
        operator_lacks=lacks,
        automation_lacks=automation[0],
        automation_secret=automation[1],
        outdated=outdated,
    )


async def _automation(
    client: KubeClient, hub: Hub, roles: Roles
) -> tuple[Sequence[Need] | None, bool | None]:
    """The rights that the playbooks' account lacks, and whether their Secret exists. Its content is not kept."""
    if not is_automated(hub):
        return (), None
    lacks = await lacks_of(client, hub, AUTOMATION, roles.automation)
    name = hub.spec.settings.get(EDA_SECRET)
    if not name:
        return lacks, None
    secret = await maybe(client.get(SECRETS, name, system_namespace(hub)))
    return lacks, None if isinstance(secret, Refused) else secret is not None


async def _outdated(client: KubeClient, crds: Sequence[Manifest]) -> dict[str, bool]:
    """For each of our CRDs that exists and that we may read: whether it differs from the one in `crds`."""
    ours = {crd["metadata"]["name"]: crd for crd in crds}
    names = [crd.name for crd in OURS if crd.name in ours]
    answers = await together(*(maybe(client.get(CRDS, name)) for name in names))
    return {
        name: schemas(installed_crd) != schemas(ours[name])
        for name, installed_crd in zip(names, answers, strict=True)
        if isinstance(installed_crd, dict)
    }


def schemas(crd: Manifest) -> dict[str, Any]:
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
    return bool(annotations.get(_DEFAULT_CLASS) == "true")


def _has_address(service: Manifest) -> bool:
    return bool(((service.get("status") or {}).get("loadBalancer") or {}).get("ingress"))


def _providers(nodes: Iterable[Manifest]) -> set[str]:
    """The cloud providers of the nodes: a cloud's controller provides load balancers."""
    id_parts = {
        str((node.get("spec") or {}).get("providerID") or "").partition("://") for node in nodes
    }
    bare = ("", "baremetalhost", "kind", "k3s")
    return {cloud for cloud, separator, _ in id_parts if separator and cloud not in bare}


def _moment(text: Any) -> datetime | None:
    try:
        return msgspec.convert(text, datetime)
    except msgspec.ValidationError:
        return None


# --- who may do what -------------------------------------------------------------------------


async def reviewed(
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
        response = await client.call("POST", f"{REVIEWS}/{kind.lower()}s", body=body)
        return bool((response.get("status") or {}).get("allowed"))

    granted: list[Need] = []
    for start in range(0, len(needs), _AT_ONCE):
        part = needs[start : start + _AT_ONCE]
        answers = await together(*(is_allowed(need) for need in part))
        granted += [need for need, allowed in zip(part, answers, strict=True) if allowed]
    return granted


async def operator_lacks(
    client: KubeClient, hub: Hub, roles: Roles
) -> Mapping[str, Sequence[Need]] | None:
    """The rights that the operator's service account lacks, by the file that grants them; None when unknown."""
    if not operator_lease(hub):
        return {}
    system = system_namespace(hub)
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
        missing_needs = await lacks_of(client, hub, OPERATOR, rights, namespace)
        if missing_needs is None:
            return None
        lacks.setdefault(file, []).extend(missing_needs)
    return lacks


async def lacks_of(
    client: KubeClient, hub: Hub, account: str, rights: Rights, namespace: str = ""
) -> list[Need] | None:
    """Which of these rights a service account in our namespace lacks. None when we may not review others."""
    user = f"system:serviceaccount:{system_namespace(hub)}:{account}"
    needs = list(needs_of(rights))
    try:
        granted = set(await reviewed(client, needs, namespace, user))
    except Refused:
        return None
    return [need for need in needs if need not in granted]


# --- requests --------------------------------------------------------------------------------


async def maybe(request: Awaitable[Any]) -> Any:
    """The answer, None when the object does not exist, the Refused error when we may not read it."""
    try:
        return await request
    except NotFound:
        return None
    except Refused as error:
        return error


async def listed(client: KubeClient, kind: Kind, fields: str = "") -> list[Any] | None:
    """All objects of a kind; None when we may not list them."""
    try:
        return (await client.list(kind, fields=fields)).items
    except (Refused, NotFound):
        return None


async def nothing() -> None:
    return None


async def together(*requests: Awaitable[Any]) -> list[Any]:
    """Runs all requests concurrently and returns their answers. The first failure cancels the others."""

    async def wait_for(request: Awaitable[Any]) -> Any:
        return await request

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(wait_for(request)) for request in requests]
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [task.result() for task in tasks]
