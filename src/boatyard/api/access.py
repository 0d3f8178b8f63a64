"""Issues short-lived kubeconfigs for clusters in a user's own name, and records each one. Called by both servers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta

from google.protobuf.message import Message

from boatyard.api import client_certificates, document_changes, policy
from boatyard.api.answers import Answers
from boatyard.api.client_certificates import Grant, IssuedCertificate
from boatyard.api.crud import Call, Crud, refuse_unsupported_dry_run
from boatyard.api.kinds import BOATYARD_V1
from boatyard.api.orders import find_cluster, read_credentials
from boatyard.api.permissions import Verb
from boatyard.api.requests import IssueRequest
from boatyard.kube.client import KubeClient
from boatyard.kube.config import KubeConfig
from boatyard.ledger.changes import EventNote, Require, Signal
from boatyard.model import wire
from boatyard.model.caller import Caller, CallerRole
from boatyard.model.errors import (
    BoatyardError,
    NotFound,
    Precondition,
    Refused,
    Unavailable,
    Violation,
)
from boatyard.model.generated.osac import Cluster, ClusterRest
from boatyard.pki.signing_requests import LONGEST_COMMON_NAME
from boatyard.resources.metadata import quote_text
from boatyard.resources.orders.remote_orders import NoRemoteOrders, RemoteOrders

logger = logging.getLogger(__name__)

IDENTITY_PREFIX = "boatyard:"  # no user or group that a cluster has by itself begins with this
ADMIN_GRANT = Grant(group=f"{IDENTITY_PREFIX}admins", role="cluster-admin")
VIEWER_GRANT = Grant(group=f"{IDENTITY_PREFIX}viewers", role="view")

DEFAULT_TTL_SECONDS = 3600
SHORTEST_TTL_SECONDS = 600  # Kubernetes signs nothing shorter
LONGEST_TTL_SECONDS = 86_400
LONGEST_USER = LONGEST_COMMON_NAME - len(IDENTITY_PREFIX)

CALL_SECONDS = 5.0  # one request to the cluster; a frozen one takes connections and never answers
ISSUE_SECONDS = 12.0  # bounds the grant, and again the certificate; callers wait for 30

Connect = Callable[[KubeConfig], KubeClient]


def _connect(config: KubeConfig) -> KubeClient:
    return KubeClient(config, timeout=CALL_SECONDS)


class AccessService:
    """Implements the service `boatyard.v1.Access`."""

    def __init__(
        self, crud: Crud, connect: Connect = _connect, remote_orders: RemoteOrders | None = None
    ) -> None:
        self._ledger = crud.ledger
        self._connect = connect
        self._remote_orders = remote_orders or NoRemoteOrders()

    def answers(self) -> Mapping[str, Answers]:
        return {f"{BOATYARD_V1}.Access": Answers(unary={"Issue": self.issue})}

    async def issue(self, request: IssueRequest, call: Call) -> Message:
        """Returns a kubeconfig with a certificate for the user. The request and the issue are both
        recorded on the cluster before the kubeconfig is returned."""
        caller = call.caller
        policy.check(caller, Verb.ISSUE, "Cluster", private=False)
        refuse_unsupported_dry_run(call)
        cluster = await find_cluster(self._ledger, request.cluster, caller)
        policy.check_owner(caller, Verb.ISSUE, cluster.metadata.tenant)
        user = request.user or caller.user
        seconds = request.ttl_seconds if request.HasField("ttl_seconds") else DEFAULT_TTL_SECONDS
        _check_request(user, seconds, caller)
        if cluster.metadata.deletion_timestamp is not None:
            raise Precondition(f"the cluster {quote_text(cluster.metadata.name)} is being deleted")
        if cluster.status.rest != ClusterRest.AWAKE:
            raise Precondition(
                f"the cluster {quote_text(cluster.metadata.name)} rests; resume it first"
            )
        config = client_certificates.parse_safe_kubeconfig(await self._read_kubeconfig(cluster))
        grant = VIEWER_GRANT if caller.role is CallerRole.VIEWER else ADMIN_GRANT
        groups = (grant.group, _issuer_group(caller))
        ttl = timedelta(seconds=seconds)
        async with _open_client(self._connect, config) as client:
            async with _map_cluster_errors(cluster):
                await client_certificates.ensure_grant(client, grant)
            await self._record_event(cluster, _make_request_note(user, ttl, caller))
            async with _map_cluster_errors(cluster):
                issued = await client_certificates.issue_certificate(
                    client, user=IDENTITY_PREFIX + user, groups=groups, ttl=ttl
                )
        await self._record_event(cluster, _make_issue_note(user, issued, caller))
        logger.info(
            "access issued",
            extra={"cluster": cluster.id, "user": user, "by": caller.user, "group": grant.group},
        )
        text = client_certificates.render_kubeconfig(
            config, cluster=cluster.metadata.name or cluster.id, user=user, issued=issued
        )
        return wire.message(f"{BOATYARD_V1}.AccessIssueResponse")(
            kubeconfig=text,
            expires_at=wire.timestamp_fields(issued.expires_at),
            user=IDENTITY_PREFIX + user,
            groups=groups,
        )

    async def _read_kubeconfig(self, cluster: Cluster) -> str:
        try:
            credentials = await read_credentials(self._ledger, cluster, self._remote_orders)
        except NotFound as error:
            raise Precondition(str(error)) from error
        if credentials.simulated:
            raise Precondition("a simulated cluster issues none: there is nothing behind its API")
        return credentials.kubeconfig

    async def _record_event(self, cluster: Cluster, note: EventNote) -> None:
        """Records the note as an event of the cluster. Precondition when the cluster is being deleted."""
        tenant = cluster.metadata.tenant
        await self._ledger.commit(
            [Require("Cluster", cluster.id), Signal("Cluster", cluster.id, tenant, note)],
            now=self._ledger.clock.now(),
        )


def _check_request(user: str, seconds: int, caller: Caller) -> None:
    violations = []
    if problem := _find_user_problem(user):
        violations.append(Violation("user", f"{quote_text(user)} {problem}", _USER_REMEDY))
    elif caller.role is CallerRole.VIEWER and user != caller.user:
        # In the cluster another name may have more rights than a viewer.
        violations.append(
            Violation("user", "viewers have access issued for themselves only", "leave it out")
        )
    if not SHORTEST_TTL_SECONDS <= seconds <= LONGEST_TTL_SECONDS:
        violations.append(
            Violation(
                "ttl_seconds",
                f"{seconds} is out of bounds",
                f"give {SHORTEST_TTL_SECONDS} (10 minutes) to {LONGEST_TTL_SECONDS} (24 hours)",
            )
        )
    if violations:
        raise Refused("", *violations)


_USER_REMEDY = f"use 1 to {LONGEST_USER} printable characters without spaces and /"


def _find_user_problem(user: str) -> str:
    """Says why this text cannot be a user's name in a certificate; empty when it can."""
    if not user.isprintable() or any(character.isspace() or character == "/" for character in user):
        return "has characters that a name may not have"
    if len(user.encode(errors="replace")) > LONGEST_USER:
        return "is too long"
    if user.casefold().startswith("system:"):
        return "begins like the users of the cluster itself"
    return ""


def _issuer_group(caller: Caller) -> str:
    """The group that names the caller. Which operator it was is in our log only, not in the tenant's cluster."""
    return (
        f"{IDENTITY_PREFIX}issued-by-operator"
        if caller.is_operator
        else f"{IDENTITY_PREFIX}issued-by:{caller.user}"
    )


def _make_request_note(user: str, ttl: timedelta, caller: Caller) -> EventNote:
    minutes = ttl.total_seconds() / 60
    action = f"A kubeconfig for {user}, good for {minutes:g} minutes, was asked for"
    return document_changes.make_note("AccessRequested", caller, action)


def _make_issue_note(user: str, issued: IssuedCertificate, caller: Caller) -> EventNote:
    until = f"{issued.expires_at:%Y-%m-%d %H:%M:%S} UTC"
    action = f"Issued a kubeconfig for {user}, valid until {until},"
    return document_changes.make_note("AccessIssued", caller, action)


@asynccontextmanager
async def _open_client(connect: Connect, config: KubeConfig) -> AsyncIterator[KubeClient]:
    client = connect(config)
    try:
        yield client
    finally:
        await client.close()


@asynccontextmanager
async def _map_cluster_errors(cluster: Cluster) -> AsyncIterator[None]:
    """Bounds calls to the cluster's API by a timeout, and turns their failures into Unavailable or Precondition."""
    name = quote_text(cluster.metadata.name or cluster.id)
    message = (
        f"the API of the cluster {name} does not answer; when it rests, wake it, then try again"
    )
    try:
        async with asyncio.timeout(ISSUE_SECONDS):
            yield
    except TimeoutError:
        raise Unavailable(message) from None
    except Unavailable as error:
        logger.warning(
            "cluster API not reachable", extra={"cluster": cluster.id, "why": str(error)}
        )
        if error.reason == "CertificateNotTrusted":
            message = f"what answers as the API of the cluster {name} is not what is known as such"
        raise Unavailable(message) from error
    except BoatyardError as error:
        raise Precondition(f"the cluster {name} issues no access: {error}") from error
