"""Issues short-lived kubeconfigs for clusters in a user's own name, and records each one. Called by both servers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from google.protobuf.message import Message

from boatyard.api import issuing, policy, writing
from boatyard.api.crud import Call, Crud, check_wet
from boatyard.api.issuing import Grant, Issued
from boatyard.api.kinds import OURS
from boatyard.api.orders import credentials_of, find_cluster
from boatyard.api.policy import Verb
from boatyard.kube.client import KubeClient
from boatyard.kube.config import KubeConfig
from boatyard.ledger.changes import Note, Require, Signal
from boatyard.model import wire
from boatyard.model.caller import Caller, Role
from boatyard.model.errors import (
    BoatyardError,
    NotFound,
    Precondition,
    Refused,
    Unavailable,
    Violation,
)
from boatyard.model.generated.osac import Cluster, ClusterRest
from boatyard.pki.requests import LONGEST_COMMON_NAME
from boatyard.resources.metadata import shown
from boatyard.resources.orders.elsewhere import Elsewhere, Nowhere

logger = logging.getLogger(__name__)

PREFIX = "boatyard:"  # no user or group that a cluster has by itself begins with this
ADMINS = Grant(group=f"{PREFIX}admins", role="cluster-admin")
VIEWERS = Grant(group=f"{PREFIX}viewers", role="view")

DEFAULT_SECONDS = 3600
LEAST_SECONDS = 600  # Kubernetes signs nothing shorter
MOST_SECONDS = 86_400
LONGEST_USER = LONGEST_COMMON_NAME - len(PREFIX)

CALL_SECONDS = 5.0  # one request to the cluster; a frozen one takes connections and never answers
ISSUE_SECONDS = 12.0  # bounds the grant, and again the certificate; callers wait for 30

Connect = Callable[[KubeConfig], KubeClient]


def _connect(config: KubeConfig) -> KubeClient:
    return KubeClient(config, timeout=CALL_SECONDS)


class Access:
    """Implements the service `boatyard.v1.Access`."""

    def __init__(
        self, crud: Crud, connect: Connect = _connect, elsewhere: Elsewhere | None = None
    ) -> None:
        self._ledger = crud.ledger
        self._connect = connect
        self._elsewhere = elsewhere or Nowhere()

    async def issue(self, request: Any, call: Call) -> Message:
        """Returns a kubeconfig with a certificate for the user. The request and the issue are both
        recorded on the cluster before the kubeconfig is returned."""
        caller = call.caller
        policy.check(caller, Verb.ISSUE, "Cluster", private=False)
        check_wet(call)
        cluster = await find_cluster(self._ledger, request.cluster, caller)
        policy.check_owner(caller, Verb.ISSUE, cluster.metadata.tenant)
        user = request.user or caller.user
        seconds = request.ttl_seconds if request.HasField("ttl_seconds") else DEFAULT_SECONDS
        _check(user, seconds, caller)
        if cluster.metadata.deletion_timestamp is not None:
            raise Precondition(f"the cluster {shown(cluster.metadata.name)} is being deleted")
        if cluster.status.rest != ClusterRest.AWAKE:
            raise Precondition(f"the cluster {shown(cluster.metadata.name)} rests; resume it first")
        config = issuing.usable(await self._kubeconfig(cluster))
        grant = VIEWERS if caller.role is Role.VIEWER else ADMINS
        groups = (grant.group, _issued_by(caller))
        ttl = timedelta(seconds=seconds)
        async with _opened(self._connect, config) as client:
            async with _reaching(cluster):
                await issuing.ensure_grant(client, grant)
            await self._record(cluster, _asked(user, ttl, caller))
            async with _reaching(cluster):
                issued = await issuing.issue(client, user=PREFIX + user, groups=groups, ttl=ttl)
        await self._record(cluster, _granted(user, issued, caller))
        logger.info(
            "access issued",
            extra={"cluster": cluster.id, "user": user, "by": caller.user, "group": grant.group},
        )
        text = issuing.kubeconfig(
            config, cluster=cluster.metadata.name or cluster.id, user=user, issued=issued
        )
        return wire.message(f"{OURS}.AccessIssueResponse")(
            kubeconfig=text,
            expires_at=wire.timestamp_fields(issued.expires_at),
            user=PREFIX + user,
            groups=groups,
        )

    async def _kubeconfig(self, cluster: Cluster) -> str:
        try:
            credentials = await credentials_of(self._ledger, cluster, self._elsewhere)
        except NotFound as error:
            raise Precondition(str(error)) from error
        if credentials.simulated:
            raise Precondition("a simulated cluster issues none: there is nothing behind its API")
        return credentials.kubeconfig

    async def _record(self, cluster: Cluster, note: Note) -> None:
        """Records the note as an event of the cluster. Precondition when the cluster is being deleted."""
        tenant = cluster.metadata.tenant
        await self._ledger.commit(
            [Require("Cluster", cluster.id), Signal("Cluster", cluster.id, tenant, note)],
            now=self._ledger.clock.now(),
        )


def _check(user: str, seconds: int, caller: Caller) -> None:
    violations = []
    if problem := _problem(user):
        violations.append(Violation("user", f"{shown(user)} {problem}", _USER_REMEDY))
    elif caller.role is Role.VIEWER and user != caller.user:
        # In the cluster another name may have more rights than a viewer.
        violations.append(
            Violation("user", "viewers have access issued for themselves only", "leave it out")
        )
    if not LEAST_SECONDS <= seconds <= MOST_SECONDS:
        violations.append(
            Violation(
                "ttl_seconds",
                f"{seconds} is out of bounds",
                f"give {LEAST_SECONDS} (10 minutes) to {MOST_SECONDS} (24 hours)",
            )
        )
    if violations:
        raise Refused("", *violations)


_USER_REMEDY = f"use 1 to {LONGEST_USER} printable characters without spaces and /"


def _problem(user: str) -> str:
    """Says why this text cannot be a user's name in a certificate; empty when it can."""
    if not user.isprintable() or any(character.isspace() or character == "/" for character in user):
        return "has characters that a name may not have"
    if len(user.encode(errors="replace")) > LONGEST_USER:
        return "is too long"
    if user.casefold().startswith("system:"):
        return "begins like the users of the cluster itself"
    return ""


def _issued_by(caller: Caller) -> str:
    """The group that names the caller. Which operator it was is in our log only, not in the tenant's cluster."""
    return (
        f"{PREFIX}issued-by-operator" if caller.is_operator else f"{PREFIX}issued-by:{caller.user}"
    )


def _asked(user: str, ttl: timedelta, caller: Caller) -> Note:
    minutes = ttl.total_seconds() / 60
    action = f"A kubeconfig for {user}, good for {minutes:g} minutes, was asked for"
    return writing.note("AccessRequested", caller, action)


def _granted(user: str, issued: Issued, caller: Caller) -> Note:
    until = f"{issued.expires_at:%Y-%m-%d %H:%M:%S} UTC"
    action = f"Issued a kubeconfig for {user}, valid until {until},"
    return writing.note("AccessIssued", caller, action)


@asynccontextmanager
async def _opened(connect: Connect, config: KubeConfig) -> AsyncIterator[KubeClient]:
    client = connect(config)
    try:
        yield client
    finally:
        await client.close()


@asynccontextmanager
async def _reaching(cluster: Cluster) -> AsyncIterator[None]:
    """Bounds calls to the cluster's API by a timeout, and turns their failures into Unavailable or Precondition."""
    name = shown(cluster.metadata.name or cluster.id)
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
