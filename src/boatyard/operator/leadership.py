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

AT = "boatyard.io/at"  # annotation: what the leader works on, by kind and id, with its attempts

_JSON_PATCH = "application/json-patch+json"

Object = dict[str, Any]
Key = tuple[str, str]
Held = Callable[[], Mapping[Key, int]]


@dataclass(frozen=True)
class Rhythm:
    """Timing of the election, in seconds. A dead leader has a successor after `duration` and at most one `retry` more.

    Renewals do not wait for each other: an API server that takes five seconds for each is fast enough.
    """

    duration: float = 12.0
    renew: float = 2.0
    retry: float = 0.5
    spare: float = 1.5  # added to `retry` while the API server fails
    margin: float = 1.0  # the leader stops so long before another may take the Lease
    careful: float = 60.0  # so long after a leader's death every batch of work is announced


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
        rhythm: Rhythm | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._name = name
        self._now = now
        self._clock = clock
        self._rhythm = rhythm or Rhythm()
        self.identity = identity
        self.suspects: Mapping[Key, int] = {}
        self.terms = 0
        self._lasting: Held = dict
        self._seen: tuple[str, float] = ("", 0.0)  # version of another's Lease, and since when
        self._until = 0.0  # nobody else can lead before this moment
        self._careful_until = 0.0
        self._leads = False
        self._unanswered = False  # the last renewal
        self._announcing = asyncio.Lock()

    # --- becoming the leader ---------------------------------------------------------------------

    async def campaign(self) -> None:
        """Returns once this process leads. An earlier lead of this process counts no longer."""
        self._leads = False
        while True:
            try:
                if await self._try():
                    logger.info("leadership acquired", extra={"identity": self.identity})
                    return
            except (Conflict, Exists):
                pass  # another was quicker
            except BoatyardError as error:
                logger.warning("leadership not requested", extra={"why": str(error)})
                await asyncio.sleep(self._rhythm.spare)
            await asyncio.sleep(self._rhythm.retry)

    async def _try(self) -> bool:
        try:
            lease = await self._client.get(LEASES, self._name, self._namespace)
        except NotFound:
            request_time = self._clock()
            await self._client.create(LEASES, self._body({}, {}), self._namespace)
            self._lead(request_time, suspects={}, died=False)
            return True
        holder = _holder(lease)
        died = holder not in ("", self.identity)
        if died and not self._has_expired(lease):
            return False
        suspects = _read_at(lease) if died else {}
        request_time = self._clock()
        await self._client.replace(LEASES, self._body(lease, suspects))
        self._lead(request_time, suspects=suspects, died=died)
        return True

    def _has_expired(self, lease: Object) -> bool:
        """Whether this process has seen the Lease unchanged for its whole duration."""
        version = str(lease["metadata"]["resourceVersion"])
        now = self._clock()
        if self._seen[0] != version:
            self._seen = version, now
        lease_seconds = float((lease.get("spec") or {}).get("leaseDurationSeconds") or 0)
        return now - self._seen[1] >= max(lease_seconds, self._rhythm.duration)

    def _lead(self, request_time: float, *, suspects: Mapping[Key, int], died: bool) -> None:
        self.suspects = suspects
        self.terms += 1
        self._lasting = dict
        self._until = request_time + self._rhythm.duration - self._rhythm.margin
        self._careful_until = request_time + self._rhythm.careful if died else 0.0
        self._unanswered = False
        self._leads = True

    # --- being the leader ------------------------------------------------------------------------

    @property
    def leads(self) -> bool:
        return self._leads and self._clock() < self._until

    def check(self) -> None:
        """Raises LeaseLost once another process may lead, and on every call after that until the next campaign."""
        if not self.leads:
            self._leads = False
            raise LeaseLost("another operator may lead this hub by now")

    def watch_over(self, long_running: Held) -> None:
        """From now on each renewal writes what `long_running` returns into the Lease."""
        self._lasting = long_running

    async def begin(self, held: Mapping[Key, int]) -> None:
        """Writes `held` into the Lease before work on it begins, for a while after a leader has died.

        Raises Unavailable without a request while renewals fail. Renewals go on; the first that succeeds ends this.
        """
        if self._clock() >= self._careful_until:
            return
        if self._unanswered:
            raise Unavailable("no work begins while the lead cannot be renewed", reason="Failing")
        async with self._announcing:
            await self._renew(held)

    async def keep(self) -> None:
        """Renews the Lease until it is lost, then raises LeaseLost. Runs in a task beside the work."""
        async with asyncio.TaskGroup() as renewals:
            while True:
                renewals.create_task(self._try_to_renew())
                await asyncio.sleep(self._rhythm.renew)
                self.check()

    async def release(self) -> None:
        """Gives the Lease back at an orderly end, so that another leads at once. If that fails the Lease expires."""
        if not self.leads:
            return
        self._leads = False
        try:
            await self._patch(_at({}), _replaced("/spec/holderIdentity", ""))
        except BoatyardError as error:
            logger.warning("leadership not given back", extra={"why": str(error)})

    async def _try_to_renew(self) -> None:
        careful = self._clock() < self._careful_until  # then `begin` writes the annotation
        try:
            await self._renew(None if careful else self._lasting())
        except Unavailable as error:
            logger.warning("leadership not renewed", extra={"why": str(error)})

    async def _renew(self, work: Mapping[Key, int] | None) -> None:
        self.check()
        request_time = self._clock()
        changes = [_replaced("/spec/renewTime", self._time())]
        if work is not None:
            changes.append(_at(work))
        try:
            await self._patch(*changes)
        except (NotFound, Refused):
            self._leads = False  # the Lease is another's, or gone
            self.check()
        except Unavailable:
            self._unanswered = True
            raise
        self._unanswered = False
        self._until = max(self._until, request_time + self._rhythm.duration - self._rhythm.margin)

    async def _patch(self, *changes: Object) -> None:
        """Patches the Lease if this process is its holder; Refused if not."""
        holder_test = {"op": "test", "path": "/spec/holderIdentity", "value": self.identity}
        path = LEASES.path(self._namespace, self._name)
        await self._client.call(
            "PATCH", path, body=[holder_test, *changes], content_type=_JSON_PATCH
        )

    def _body(self, lease: Object, work: Mapping[Key, int]) -> Object:
        metadata: Object = {"name": self._name, "namespace": self._namespace}
        current_metadata = lease.get("metadata") or {}
        if "resourceVersion" in current_metadata:
            metadata["resourceVersion"] = current_metadata["resourceVersion"]
        if work:
            metadata["annotations"] = {AT: _write_at(work)}
        transitions = int((lease.get("spec") or {}).get("leaseTransitions") or 0)
        return {
            "metadata": metadata,
            "spec": {
                "holderIdentity": self.identity,
                "leaseDurationSeconds": max(1, round(self._rhythm.duration)),
                "acquireTime": self._time(),
                "renewTime": self._time(),
                "leaseTransitions": transitions + (_holder(lease) != self.identity),
            },
        }

    def _time(self) -> str:
        return self._now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _holder(lease: Object) -> str:
    return str((lease.get("spec") or {}).get("holderIdentity") or "")


def _replaced(path: str, value: str) -> Object:
    return {"op": "replace", "path": path, "value": value}


def _at(work: Mapping[Key, int]) -> Object:
    annotations = {AT: _write_at(work)} if work else {}
    return {"op": "add", "path": "/metadata/annotations", "value": annotations}


def _write_at(work: Mapping[Key, int]) -> str:
    return msgspec.json.encode({"/".join(key): count for key, count in work.items()}).decode()


def _read_at(lease: Object) -> dict[Key, int]:
    annotation = (lease["metadata"].get("annotations") or {}).get(AT) or "{}"
    try:
        attempts = msgspec.json.decode(annotation, type=dict[str, int])
    except msgspec.DecodeError:
        return {}  # somebody edited it by hand: nothing is suspect
    keys = {text: text.partition("/") for text in attempts}
    return {(kind, id): attempts[text] for text, (kind, _, id) in keys.items()}
