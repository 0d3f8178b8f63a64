"""Reconciles the control plane of one local cluster with its record. Owned by the keeper, one task per cluster.

Every pass reads what is there and does what is missing, so a pass that dies half way is simply repeated.
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

PROBE_SECONDS = 0.05  # between probes of an API server that is coming up
READY_PROBE_SECONDS = 0.2  # between /readyz probes, which are expensive for the API server
HEALTH_SECONDS = 5.0
RESTING_SECONDS = 60.0
BUG_SECONDS = 10.0  # after a pass that ended with an internal error
_NEVER = -1.0
_STRANGER = "The API does not accept the certificate of its keeper."


class ControlPlane:
    """One control plane. `message` and `available` are those of the last probe."""

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
        self.listening = False  # the API server answers its administrator
        self._reads: dict[
            str, str
        ] = {}  # by program: a digest of the files it reads only at its start
        self._bound = ""  # the version for which the groups' role bindings were written
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
        """Starts a pass now. Returns a function that returns the error of the first pass that began after this
        call, or None while there is none."""
        self._wake.set()
        first = self._begun + 1
        return lambda: self.failure if self._ended >= first else None

    async def changed(self) -> None:
        """Waits until the state of the control plane has changed."""
        await self._changed.wait()

    def change(self, **fields: object) -> Record:
        return self._records.save(msgspec.structs.replace(self.record, **fields))

    @property
    def settled(self) -> bool:
        """Whether the desired state is reached."""
        record = self.record
        desired = record.wanted
        if record.leaving or _is_due(record):
            return False
        if desired.rest == Rest.AWAKE:
            return self.available and record.version == desired.version and not self.ground.moving
        return self.gone_to_rest

    async def drive(self) -> None:
        """Runs passes until the cluster is gone."""
        await self.crew.adopt()
        while not self.gone:
            self._wake.clear()
            self._begun += 1
            try:
                failure, wait = await self._pass()
            except BoatyardError as error:
                failure, wait = error, 1.0
            except OSError as error:  # for example a full disk: the next pass may succeed
                failure, wait = Unavailable(f"this machine says: {error}"), 1.0
            except Exception:  # a bug in one pass must not leave the cluster without a keeper
                logger.exception("control plane pass crashed", extra={"cluster": self.slug})
                failure, wait = Unavailable("internal error of the keeper"), BUG_SECONDS
            if failure is not None and str(failure) != str(self.failure):
                logger.warning(
                    "control plane pass failed", extra={"cluster": self.slug, "why": str(failure)}
                )
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
        """Runs one pass. Returns its error, if any, and the seconds until the next pass."""
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
                failure = error  # the cluster continues with its present objects
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
        # A half-finished upgrade is completed first: the old version may be unable to read what the new one wrote.
        target = record.upgrading or record.wanted.version
        running_version = record.version or target
        if target != running_version and target != record.failed_version:
            return await moving.upgrade(self, record, target)
        wait = await self.keep_up(record, [running_version] * record.members)
        if (
            self.available
        ):  # the upgrade is over, so the snapshot for a rollback is not needed any more
            await asyncio.to_thread(moving.forget_snapshots, self.directory / "private")
        return wait

    def has_data(self, record: Record) -> bool:
        """Whether the etcd data exists. Without it etcd would start empty, and the empty cluster would look healthy."""
        return all((path / "member").exists() for path in self.data_directories(record))

    def data_directories(self, record: Record) -> list[Path]:
        return [self.run_directory / "var" / f"etcd-{n}" for n in range(record.members)]

    async def is_up(self, record: Record, versions: Sequence[str]) -> bool:
        """Starts what is missing. True when everything of these versions runs and every API server is ready."""
        return await self.keep_up(record, versions) == HEALTH_SECONDS and await self._all_answer()

    async def keep_up(self, record: Record, versions: Sequence[str]) -> float:
        """Starts what is missing of these versions. Returns the seconds until the next pass."""
        record = await preparing.with_free_ports(self, record, self._records.ports_taken)
        netns = components.segment(record) if record.real else ""
        first = [
            Wanted(component, version, netns)
            for make in (components.etcds, components.api_servers)
            for component, version in zip(make(record), versions, strict=True)
        ]
        # The balancer has no version: restarting it with an upgrade would break every connection.
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
        """Whether the API server answers, so that its administrator can use it. Controllers start once it is ready."""
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
        """Writes directories, keys, certificates and configuration. Cheap when everything exists."""
        preparing.make_directories(record, self.directory)
        if not record.encryption_keys:
            key = base64.b64encode(os.urandom(32)).decode()
            record = self.change(encryption_keys=(key,))
        self._reads = await asyncio.to_thread(preparing.write_files, record, self.directory)
        if self.client is None:
            self.client, self._members = preparing.our_clients(record, self.directory)

    async def _begin(self, record: Record) -> None:
        """Starts the etcd of a new cluster with one member early: it needs no keys, which are created meanwhile."""
        if not record.version and record.members == 1 and not record.real:
            preparing.make_directories(record, self.directory)
            etcds = [Wanted(etcd, record.wanted.version) for etcd in components.etcds(record)]
            await self.crew.ensure(etcds, time.monotonic())

    async def _all_answer(self) -> bool:
        """Whether each API server is ready, asked directly: the balancer would hide one that is not."""
        return all([await is_ready(client) is Heard.YES for client in self._members])

    async def answers(self, record: Record) -> bool:
        """Whether the API reports that it is ready."""
        assert self.client is not None
        return await self._noted(record, await is_ready(self.client))

    async def _noted(self, record: Record, result: Heard) -> bool:
        """Whether the probe succeeded. Restarts an API server that has been silent for long, but not one that
        only rejects our certificate."""
        silent_probes = self._silence.note(result)
        if result is Heard.STRANGER:
            if self.message != _STRANGER:
                logger.error(
                    "API server rejects the keeper's certificate", extra={"cluster": self.slug}
                )
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
                record = self.change(
                    frozen=True
                )  # recorded first, so that the next keeper thaws them
            await self.ground.freeze(frozen=True)
            await self.crew.freeze()
            self.say(available=False, message="The cluster is frozen.")
        else:
            await self.stop_all(record)
            self.say(available=False, message="The cluster is stopped.")
        self.gone_to_rest = True
        return RESTING_SECONDS

    async def stop_all(self, record: Record) -> None:
        """Stops controllers and API servers before etcd, so that their last writes are stored."""
        self.listening = False
        self._rush.leave(self.slug)
        await self.ground.stop()
        last = [component.name for component in components.etcds(record)]
        # An API server that is just starting ignores SIGTERM, and has nothing to lose yet: it is killed.
        await self.crew.stop_all(kill=not record.version, last=last)
        await self.ground.leave()
        if record.frozen:
            self.change(frozen=False)

    def begin_anew(self) -> None:
        """Forgets what was written to the API: its objects have been replaced."""
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
        """Stops the processes without changing the desired state: the next keeper starts them again."""
        await self.stop_all(self.record)

    async def close(self) -> None:
        """Closes our connections; the cluster runs on."""
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
    """Whether a desired restore has not been carried out yet."""
    restore = record.wanted.restore
    return restore is not None and restore.request != record.restored
