"""One cluster on this machine, driven towards what is wanted of it. Owned by the keeper, one task each.

Every pass looks at what is there and does what is missing, so a pass that dies half way is only repeated.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from boatyard.kube.client import KubeClient
from boatyard.model.errors import BoatyardError, Unavailable
from boatyard.platforms.drivers.local import components, moving, preparing
from boatyard.platforms.drivers.local.crew import Crew, FindProgram, Wanted
from boatyard.platforms.drivers.local.first_words import (
    Heard,
    Silence,
    bind_groups,
    is_ready,
    listens,
)
from boatyard.platforms.drivers.local.ground import Ground
from boatyard.platforms.drivers.local.limits import Limits
from boatyard.platforms.drivers.local.records import Record, Records
from boatyard.platforms.drivers.local.rush import Rush
from boatyard.platforms.port import Rest

logger = logging.getLogger(__name__)

PROBE_SECONDS = 0.05  # between looks at an API server that is coming up
READY_PROBE_SECONDS = 0.2  # and at one that listens: it asks itself many questions for each answer
HEALTH_SECONDS = 5.0
RESTING_SECONDS = 60.0
BUG_SECONDS = 10.0  # after a pass that ended as none should
_NEVER = -1.0
_STRANGER = "The API does not accept the certificate of its keeper."


class ControlPlane:
    """What `message` and `available` say is what was seen last."""

    def __init__(
        self,
        slug: str,
        records: Records,
        *,
        mark: str,
        program: FindProgram,
        backup_place: Callable[[str], Path],
        rush: Rush,
    ) -> None:
        self.slug = slug
        self._rush = rush
        self._records = records
        self._backup_place = backup_place
        self.program = program
        self.available = False
        self.message = "The control plane is being created."
        self.failure: BoatyardError | None = None  # of the last pass
        self._begun = self._ended = 0  # passes
        self.gone = False
        self.gone_to_rest = False
        self.ground = Ground()
        self.client: KubeClient | None = None
        self._members: list[KubeClient] = []  # each of several API servers by itself
        self._wake = asyncio.Event()
        self._changed = asyncio.Event()
        self._told: tuple[object, ...] = ()
        self._silence = Silence()
        self.listening = False  # its administrator is answered
        self._reads: dict[str, str] = {}  # by program: what it reads only when it starts
        self._bound = ""  # the version whose groups have their rights
        self.crew = Crew(
            f"{mark}/{slug}",
            self.run_directory,
            user=self.record.user,
            bounds=Limits(3 * self.record.members * 1024**3, 2000 * self.record.members),
            program=program,
            on_exit=self._wake.set,
        )

    @property
    def record(self) -> Record:
        return self._records.get(self.slug)

    @property
    def directory(self) -> Path:
        return self._records.place(self.slug)

    @property
    def run_directory(self) -> Path:
        return self.directory / "run"

    def wake(self) -> Callable[[], BoatyardError | None]:
        """Makes it look at once; gives who says what could not be done by one who began to look after that."""
        self._wake.set()
        first = self._begun + 1
        return lambda: self.failure if self._ended >= first else None

    async def changed(self) -> None:
        """Until something about it is different from before."""
        await self._changed.wait()

    def change(self, **fields: object) -> Record:
        return self._records.save(msgspec.structs.replace(self.record, **fields))

    @property
    def settled(self) -> bool:
        """All that is wanted is so."""
        record = self.record
        desired = record.wanted
        if record.leaving or _is_due(record):
            return False
        if desired.rest == Rest.AWAKE:
            return self.available and record.version == desired.version and not self.ground.moving
        return self.gone_to_rest

    async def drive(self) -> None:
        """Until the cluster is gone."""
        await self.crew.adopt()
        while not self.gone:
            self._wake.clear()
            self._begun += 1
            try:
                failure, wait = await self._pass()
            except BoatyardError as error:
                failure, wait = error, 1.0
            except OSError as error:  # no room, no right: it may be there the next time
                failure, wait = Unavailable(f"this machine says: {error}"), 1.0
            except Exception:  # a bug in one pass must not leave the cluster without a keeper
                logger.exception("internal error", extra={"cluster": self.slug})
                failure, wait = Unavailable("internal error of the keeper"), BUG_SECONDS
            if failure is not None and str(failure) != str(self.failure):
                logger.warning("pass failed", extra={"cluster": self.slug, "why": str(failure)})
            self.failure = failure
            self._ended = self._begun
            self._tell_if_new()
            if wait == _NEVER:
                return
            try:
                async with asyncio.timeout(wait):
                    await self._wake.wait()
            except TimeoutError:
                continue

    async def _pass(self) -> tuple[BoatyardError | None, float]:
        """What could not be done, and the seconds until the next look."""
        record, failure = self.record, None
        if record.leaving:
            await self._leave()
            return None, _NEVER
        if record.putting_back:
            await self.stop_all(record)
            await moving.finish_putting_back(self, record)
            record = self.record
        restore = record.wanted.restore
        if restore is not None and _is_due(record):
            try:
                place = self._backup_place(restore.backup_key)
                await moving.restore(self, record, restore.request, place)
            except BoatyardError as error:
                if not record.version:
                    raise
                failure = error  # what ran before goes on running
            record = self.record
        if record.wanted.rest != Rest.AWAKE and record.version:
            return failure, await self._rest(record)
        return failure, await self._run(record)

    # --- awake -------------------------------------------------------------------------------

    async def _run(self, record: Record) -> float:
        if self.gone_to_rest:
            self.gone_to_rest = False
            self.say(available=False, message="The control plane is waking up.")
        if record.frozen:
            self.crew.thaw()
            await self.ground.freeze(frozen=False)
            record = self.change(frozen=False)
        await asyncio.gather(self.prepare(record), self._begin(record))
        await asyncio.to_thread(self.crew.shorten_logs)
        await self.ground.prepare()
        if record.rolling_back:
            await moving.roll_back(self, record)
            return 0.0
        if record.version and not self.has_data(record):
            message = "The cluster's objects are gone from this machine; restore a backup."
            self.say(available=False, message=message)
            raise Unavailable(message, reason="NoData")
        # Half way to a version there is no turning round: what it wrote the old one may not read.
        target = record.upgrading or record.wanted.version
        running_version = record.version or target
        if target != running_version and target != record.failed_version:
            return await moving.upgrade(self, record, target)
        wait = await self.keep_up(record, [running_version] * record.members)
        if self.available:  # whatever version it came from, it needs no way back any more
            await asyncio.to_thread(moving.forget_snapshots, self.directory / "private")
        return wait

    def has_data(self, record: Record) -> bool:
        """An etcd that finds nothing begins with nothing, and a tenant's empty cluster would look healthy."""
        return all((path / "member").exists() for path in self.data_directories(record))

    def data_directories(self, record: Record) -> list[Path]:
        return [self.run_directory / "var" / f"etcd-{n}" for n in range(record.members)]

    async def is_up(self, record: Record, versions: Sequence[str]) -> bool:
        """Everything of these versions runs, and every API server answers."""
        return await self.keep_up(record, versions) == HEALTH_SECONDS and await self._all_answer()

    async def keep_up(self, record: Record, versions: Sequence[str]) -> float:
        """Everything of these versions runs, or is being started; the seconds until the next look."""
        record = await preparing.with_free_ports(self, record, self._records.ports_taken)
        netns = components.segment(record) if record.real else ""
        first = [
            Wanted(component, version, netns)
            for make in (components.etcds, components.api_servers)
            for component, version in zip(make(record), versions, strict=True)
        ]
        # The balancer is ours, and of no version: a new one would break every connection.
        first += [Wanted(component, "") for component in components.balancers(record)]
        if not any(self.crew.is_running(server.name) for server in components.api_servers(record)):
            self.listening = False
            if self.available:
                self.say(available=False, message="The API server is starting.")
        wait = await self.crew.ensure(first, time.monotonic())
        if wait:
            return wait
        if not self.listening and not await self._begins_to_listen(record, versions[-1]):
            return PROBE_SECONDS * self._rush.size
        if not await self.answers(record):
            return READY_PROBE_SECONDS
        if self._bound != versions[-1] and self.client is not None:
            await bind_groups(self.client)
            self._bound = versions[-1]
        if not self.available and self._rush.is_on(self.slug):
            return READY_PROBE_SECONDS
        controllers = [
            Wanted(component, versions[-1], netns, self._reads.get(component.program, ""))
            for component in components.controllers(record)
        ]
        self.say(available=True, message=self.ground.moving)
        return await self.crew.ensure(controllers, time.monotonic()) or HEALTH_SECONDS

    async def _begins_to_listen(self, record: Record, version: str) -> bool:
        """From then on its administrator can use it; the controllers follow when it calls itself ready."""
        assert self.client is not None
        self._rush.begin(self.slug)
        if not await self._noted(record, await listens(self.client)):
            return False
        self._rush.arrive(self.slug)
        self.listening = True
        if not self.record.version:
            self.change(version=version)
        self._tell()
        return True

    async def prepare(self, record: Record) -> None:
        """Directories, keys, certificates and configuration: cheap when all is there."""
        preparing.make_directories(record, self.directory)
        if not record.encryption_keys:
            key = base64.b64encode(os.urandom(32)).decode()
            record = self.change(encryption_keys=(key,))
        self._reads = await asyncio.to_thread(preparing.write_files, record, self.directory)
        if self.client is None:
            self.client, self._members = preparing.our_clients(record, self.directory)

    async def _begin(self, record: Record) -> None:
        """A new cluster's only etcd needs no keys: it comes up while they are made."""
        if not record.version and record.members == 1 and not record.real:
            preparing.make_directories(record, self.directory)
            etcds = [Wanted(etcd, record.wanted.version) for etcd in components.etcds(record)]
            await self.crew.ensure(etcds, time.monotonic())

    async def _all_answer(self) -> bool:
        """Each API server by itself, past the balancer that would hide one that does not."""
        return all([await is_ready(client) is Heard.YES for client in self._members])

    async def answers(self, record: Record) -> bool:
        """Does the API say that it is ready?"""
        assert self.client is not None
        return await self._noted(record, await is_ready(self.client))

    async def _noted(self, record: Record, result: Heard) -> bool:
        """One that stays silent for long is ended, and so begun anew. One that does not know us is well."""
        silent_probes = self._silence.note(result)
        if result is Heard.STRANGER:
            if self.message != _STRANGER:
                logger.error("the API server does not know us", extra={"cluster": self.slug})
            self.say(available=False, message=_STRANGER)
        if result is not Heard.NO:
            return result is Heard.YES
        if self.available and silent_probes > 1:
            self.say(available=False, message="The API does not answer.")
        if not self.available and not self.message:
            self.say(available=False, message="The API server is starting.")
        if self._silence.is_long and self.available is False:
            await self._end_hung(record)
        return False

    async def _end_hung(self, record: Record) -> None:
        now, bound = time.monotonic(), self._silence.patience * HEALTH_SECONDS
        names = [component.name for component in components.api_servers(record)]
        hung = [name for name in names if self.crew.age(name, now) > bound]
        if hung:
            self._silence.be_more_patient()
            await self.crew.stop(hung, kill=True)

    # --- rest --------------------------------------------------------------------------------

    async def _rest(self, record: Record) -> float:
        if record.wanted.rest == Rest.FROZEN:
            if not record.frozen:
                record = self.change(frozen=True)  # first: who finds us must know to thaw them
            await self.ground.freeze(frozen=True)
            await self.crew.freeze()
            self.say(available=False, message="The cluster is frozen.")
        else:
            await self.stop_all(record)
            self.say(available=False, message="The cluster is stopped.")
        self.gone_to_rest = True
        return RESTING_SECONDS

    async def stop_all(self, record: Record) -> None:
        """Controllers and API servers before etcd: what they still have to say must be kept."""
        self.listening = False
        self._rush.leave(self.slug)
        await self.ground.stop()
        last = [component.name for component in components.etcds(record)]
        # An API server that is only just starting hears no signal but one, and has nothing to lose yet.
        await self.crew.stop_all(kill=not record.version, last=last)
        await self.ground.leave()
        if record.frozen:
            self.change(frozen=False)

    def begin_anew(self) -> None:
        """Other objects than before: what was said to the API must be said again."""
        self._bound = ""
        self.crew.forgive()

    # --- the end -----------------------------------------------------------------------------

    async def _leave(self) -> None:
        self.say(available=False, message="The control plane is being removed.")
        self._rush.leave(self.slug)
        await self.close()
        await self.crew.stop_all(kill=True)
        await self.ground.leave()
        await asyncio.to_thread(self._records.forget, self.slug)
        self.gone = True

    async def stop(self) -> None:
        """Stops its processes, whatever is wanted of it: the next keeper starts them again."""
        await self.stop_all(self.record)

    async def close(self) -> None:
        """Lets go of the connection; the cluster runs on."""
        clients = [*self._members, *([self.client] if self.client else [])]
        self.client, self._members = None, []
        for client in clients:
            await client.close()

    def say(self, *, available: bool, message: str) -> None:
        if (self.available, self.message) != (available, message):
            self.available, self.message = available, message
            self._tell()

    def _tell_if_new(self) -> None:
        state: tuple[object, ...] = (True,)
        if not self.gone:
            failed = (str(self.failure), self._ended) if self.failure else ()
            state = (self.settled, failed, self.record.version, self.gone_to_rest)
        if state != self._told:
            self._told = state
            self._tell()

    def _tell(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()


def _is_due(record: Record) -> bool:
    """A restore is wanted that was not carried out yet."""
    restore = record.wanted.restore
    return restore is not None and restore.request != record.restored
