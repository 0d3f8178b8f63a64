"""Leader election: of several operators on a hub only the holder of the Lease works. Called by the operator's run.

No clock is compared with another's. A candidate waits until the Lease has not changed for its whole duration, by the
candidate's own monotonic clock. The leader stops leading a margin before that, by its own monotonic clock, counted from
before it sent the last successful renewal. The times written in the Lease are for people.

The Lease also lists what the leader works on. When a leader dies its successor treats that work as suspect: it may be
what the leader died of. In normal operation this costs no extra request, only the renewals that are sent anyway.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from boatyard.kube.client import KubeClient
from boatyard.kube.kinds import LEASES
from boatyard.model.errors import (
    BoatyardError,
    Conflict,
    Exists,
    LeaseLost,
    NotFound,
    Refused,
    Unavailable,
)

logger = logging.getLogger(__name__)

WORK_ANNOTATION = (
    "boatyard.io/at"  # annotation: what the leader works on, by kind and id, with its attempts
)

_JSON_PATCH = "application/json-patch+json"

Object = dict[str, Any]
Key = tuple[str, str]
ListWork = Callable[[], Mapping[Key, int]]


@dataclass(frozen=True)
class ElectionTiming:
    """Timing of the election, in seconds. A dead leader has a successor after `duration` and at most one `retry` more.

    Renewals do not wait for each other: an API server that takes five seconds for each is fast enough.
    """

    duration: float = 12.0
    renew: float = 2.0
    retry: float = 0.5
    failure_pause: float = 1.5  # added to `retry` while the API server fails
    margin: float = 1.0  # the leader stops so long before another may take the Lease
    careful_period: float = 60.0  # so long after a leader's death every batch of work is announced


class Leadership:
    """One candidate for one Lease. `client` is used for nothing else: work must not delay renewals."""

    def __init__(
        self,
        client: KubeClient,
        *,
        namespace: str,
        name: str,
        identity: str,
        now: Callable[[], datetime],
        timing: ElectionTiming | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._name = name
        self._now = now
        self._clock = clock
        self._timing = timing or ElectionTiming()
        self.identity = identity
        self.suspects: Mapping[Key, int] = {}
        self.terms = 0
        self._list_long_running_work: ListWork = dict
        self._observed_lease: tuple[str, float] = (
            "",
            0.0,
        )  # version of another's Lease, and since when
        self._leads_until = 0.0  # nobody else can lead before this moment
        self._careful_until = 0.0
        self._is_leading = False
        self._renewal_failed = False  # the last renewal
        self._announce_lock = asyncio.Lock()

    # --- becoming the leader ---------------------------------------------------------------------

    async def campaign(self) -> None:
        """Returns once this process leads. An earlier lead of this process counts no longer."""
        self._is_leading = False
        while True:
            try:
                if await self._try_to_acquire():
                    logger.info("leadership acquired", extra={"identity": self.identity})
                    return
            except (Conflict, Exists):
                pass  # another was quicker
            except BoatyardError as error:
                logger.warning("leadership not requested", extra={"why": str(error)})
                await asyncio.sleep(self._timing.failure_pause)
            await asyncio.sleep(self._timing.retry)

    async def _try_to_acquire(self) -> bool:
        try:
            lease = await self._client.get(LEASES, self._name, self._namespace)
        except NotFound:
            request_time = self._clock()
            await self._client.create(LEASES, self._make_lease_body({}, {}), self._namespace)
            self._become_leader(request_time, suspects={}, died=False)
            return True
        holder = _holder(lease)
        died = holder not in ("", self.identity)
        if died and not self._has_expired(lease):
            return False
        suspects = _parse_work(lease) if died else {}
        request_time = self._clock()
        await self._client.replace(LEASES, self._make_lease_body(lease, suspects))
        self._become_leader(request_time, suspects=suspects, died=died)
        return True

    def _has_expired(self, lease: Object) -> bool:
        """Whether this process has seen the Lease unchanged for its whole duration."""
        version = str(lease["metadata"]["resourceVersion"])
        now = self._clock()
        if self._observed_lease[0] != version:
            self._observed_lease = version, now
        lease_seconds = float((lease.get("spec") or {}).get("leaseDurationSeconds") or 0)
        return now - self._observed_lease[1] >= max(lease_seconds, self._timing.duration)

    def _become_leader(
        self, request_time: float, *, suspects: Mapping[Key, int], died: bool
    ) -> None:
        self.suspects = suspects
        self.terms += 1
        self._list_long_running_work = dict
        self._leads_until = request_time + self._timing.duration - self._timing.margin
        self._careful_until = request_time + self._timing.careful_period if died else 0.0
        self._renewal_failed = False
        self._is_leading = True

    # --- being the leader ------------------------------------------------------------------------

    @property
    def is_leader(self) -> bool:
        return self._is_leading and self._clock() < self._leads_until

    def check_leadership(self) -> None:
        """Raises LeaseLost once another process may lead, and on every call after that until the next campaign."""
        if not self.is_leader:
            self._is_leading = False
            raise LeaseLost("another operator may lead this hub by now")

    def set_long_running_work(self, long_running: ListWork) -> None:
        """From now on each renewal writes what `long_running` returns into the Lease."""
        self._list_long_running_work = long_running

    async def announce_work(self, held: Mapping[Key, int]) -> None:
        """Writes `held` into the Lease before work on it begins, for a while after a leader has died.

        Raises Unavailable without a request while renewals fail. Renewals go on; the first that succeeds ends this.
        """
        if self._clock() >= self._careful_until:
            return
        if self._renewal_failed:
            raise Unavailable("no work begins while the lead cannot be renewed", reason="Failing")
        async with self._announce_lock:
            await self._renew(held)

    async def renew_until_lost(self) -> None:
        """Renews the Lease until it is lost, then raises LeaseLost. Runs in a task beside the work."""
        async with asyncio.TaskGroup() as renewals:
            while True:
                renewals.create_task(self._try_to_renew())
                await asyncio.sleep(self._timing.renew)
                self.check_leadership()

    async def release(self) -> None:
        """Gives the Lease back at an orderly end, so that another leads at once. If that fails the Lease expires."""
        if not self.is_leader:
            return
        self._is_leading = False
        try:
            await self._patch(
                _make_work_operation({}), _make_replace_operation("/spec/holderIdentity", "")
            )
        except BoatyardError as error:
            logger.warning("leadership not given back", extra={"why": str(error)})

    async def _try_to_renew(self) -> None:
        careful = self._clock() < self._careful_until  # then `begin` writes the annotation
        try:
            await self._renew(None if careful else self._list_long_running_work())
        except Unavailable as error:
            logger.warning("leadership not renewed", extra={"why": str(error)})

    async def _renew(self, work: Mapping[Key, int] | None) -> None:
        self.check_leadership()
        request_time = self._clock()
        changes = [_make_replace_operation("/spec/renewTime", self._format_now())]
        if work is not None:
            changes.append(_make_work_operation(work))
        try:
            await self._patch(*changes)
        except (NotFound, Refused):
            self._is_leading = False  # the Lease is another's, or gone
            self.check_leadership()
        except Unavailable:
            self._renewal_failed = True
            raise
        self._renewal_failed = False
        self._leads_until = max(
            self._leads_until, request_time + self._timing.duration - self._timing.margin
        )

    async def _patch(self, *changes: Object) -> None:
        """Patches the Lease if this process is its holder; Refused if not."""
        holder_test = {"op": "test", "path": "/spec/holderIdentity", "value": self.identity}
        path = LEASES.path(self._namespace, self._name)
        await self._client.call(
            "PATCH", path, body=[holder_test, *changes], content_type=_JSON_PATCH
        )

    def _make_lease_body(self, lease: Object, work: Mapping[Key, int]) -> Object:
        metadata: Object = {"name": self._name, "namespace": self._namespace}
        current_metadata = lease.get("metadata") or {}
        if "resourceVersion" in current_metadata:
            metadata["resourceVersion"] = current_metadata["resourceVersion"]
        if work:
            metadata["annotations"] = {WORK_ANNOTATION: _format_work(work)}
        transitions = int((lease.get("spec") or {}).get("leaseTransitions") or 0)
        return {
            "metadata": metadata,
            "spec": {
                "holderIdentity": self.identity,
                "leaseDurationSeconds": max(1, round(self._timing.duration)),
                "acquireTime": self._format_now(),
                "renewTime": self._format_now(),
                "leaseTransitions": transitions + (_holder(lease) != self.identity),
            },
        }

    def _format_now(self) -> str:
        return self._now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _holder(lease: Object) -> str:
    return str((lease.get("spec") or {}).get("holderIdentity") or "")


def _make_replace_operation(path: str, value: str) -> Object:
    return {"op": "replace", "path": path, "value": value}


def _make_work_operation(work: Mapping[Key, int]) -> Object:
    annotations = {WORK_ANNOTATION: _format_work(work)} if work else {}
    return {"op": "add", "path": "/metadata/annotations", "value": annotations}


def _format_work(work: Mapping[Key, int]) -> str:
    return msgspec.json.encode({"/".join(key): count for key, count in work.items()}).decode()


def _parse_work(lease: Object) -> dict[Key, int]:
    annotation = (lease["metadata"].get("annotations") or {}).get(WORK_ANNOTATION) or "{}"
    try:
        attempts = msgspec.json.decode(annotation, type=dict[str, int])
    except msgspec.DecodeError:
        return {}  # somebody edited it by hand: nothing is suspect
    keys = {text: text.partition("/") for text in attempts}
    return {(kind, id): attempts[text] for text, (kind, _, id) in keys.items()}
