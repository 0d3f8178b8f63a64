"""Of several operators on a hub one works: whoever holds the Lease. Called by the operator's run.

No clock is compared with another's: a candidate waits until a Lease has not changed for its whole duration, by the
candidate's own monotonic clock; the leader stops believing in its own a margin before that, by its own, counted from
before it asked. What the Lease says about times is for people.

The Lease also carries what the leader is at. When a leader dies its successor treats that as suspect: it may have
been what it died of. That costs no request of its own while all goes well, only the renewals that are made anyway.
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

AT = "boatyard.io/at"  # annotation: what the leader is at, by kind and id, with its attempts

_JSON_PATCH = "application/json-patch+json"

Object = dict[str, Any]
Key = tuple[str, str]
Held = Callable[[], Mapping[Key, int]]


@dataclass(frozen=True)
class Rhythm:
    """Seconds. A dead leader is followed after `duration` and at most one `retry` more.

    Renewals do not wait for each other: an API server that takes five seconds for each is still in time.
    """

    duration: float = 12.0
    renew: float = 2.0
    retry: float = 0.5
    spare: float = 1.5  # longer between tries while the API server fails
    margin: float = 1.0  # before the Lease may pass on, its leader stops
    careful: float = 60.0  # for so long after a death every batch of work is announced


class Leadership:
    """One candidate's view of one Lease. `client` is for this alone: work must not hold up renewals."""

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
        """Returns once this process leads. What it led before is forgotten."""
        self._leads = False
        while True:
            try:
                if await self._try():
                    logger.info("leading", extra={"identity": self.identity})
                    return
            except (Conflict, Exists):
                pass  # another was quicker
            except BoatyardError as error:
                logger.warning("cannot ask for the lead", extra={"why": str(error)})
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
        """Whether it has stood unchanged before our own eyes for as long as it may."""
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
        """LeaseLost once another may lead; from then on for good, until the next campaign."""
        if not self.leads:
            self._leads = False
            raise LeaseLost("another operator may lead this hub by now")

    def watch_over(self, long_running: Held) -> None:
        """What has been worked on for long is told with each renewal from now on."""
        self._lasting = long_running

    async def begin(self, held: Mapping[Key, int]) -> None:
        """Announces work before it begins, for a while after a leader has died.

        Unavailable without asking while renewals fail: they go on by themselves, and one that succeeds ends it.
        """
        if self._clock() >= self._careful_until:
            return
        if self._unanswered:
            raise Unavailable("nothing is begun while the lead cannot be renewed", reason="Failing")
        async with self._announcing:
            await self._renew(held)

    async def keep(self) -> None:
        """Renews until the lead is lost, which it raises. Runs beside the work."""
        async with asyncio.TaskGroup() as renewals:
            while True:
                renewals.create_task(self._try_to_renew())
                await asyncio.sleep(self._rhythm.renew)
                self.check()

    async def release(self) -> None:
        """Lets another lead at once; for when we end in good order. If that fails it takes a moment longer."""
        if not self.leads:
            return
        self._leads = False
        try:
            await self._patch(_at({}), _replaced("/spec/holderIdentity", ""))
        except BoatyardError as error:
            logger.warning("lead not given back", extra={"why": str(error)})

    async def _try_to_renew(self) -> None:
        careful = self._clock() < self._careful_until  # then work itself says what it is
        try:
            await self._renew(None if careful else self._lasting())
        except Unavailable as error:
            logger.warning("lead not renewed", extra={"why": str(error)})

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
        """Changes the Lease while it names us; Refused when it does not."""
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
        return {}  # somebody's handwriting: nobody is suspect
    keys = {text: text.partition("/") for text in attempts}
    return {(kind, id): attempts[text] for text, (kind, _, id) in keys.items()}
