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
from boatyard.platforms.drivers.local import components, control_plane_setup, upgrade_restore
from boatyard.platforms.drivers.local.api_probe import (
    ProbeFailures,
    ProbeResult,
    bind_groups,
    probe_listening,
    probe_ready,
)
from boatyard.platforms.drivers.local.cgroup_limits import CgroupLimits
from boatyard.platforms.drivers.local.node_hooks import NodeHooks
from boatyard.platforms.drivers.local.process_supervisor import (
    DesiredProcess,
    FindProgram,
    ProcessSupervisor,
)
from boatyard.platforms.drivers.local.records import ClusterRecord, ClusterRecords
from boatyard.platforms.drivers.local.startup_throttle import StartupThrottle
from boatyard.platforms.port import RestMode

logger = logging.getLogger(__name__)

PROBE_SECONDS = 0.05  # between probes of an API server that is coming up
READY_PROBE_SECONDS = 0.2  # between /readyz probes, which are expensive for the API server
HEALTH_SECONDS = 5.0
RESTING_PASS_SECONDS = 60.0
CRASH_PAUSE_SECONDS = 10.0  # after a pass that ended with an internal error
_NO_NEXT_PASS = -1.0
_UNAUTHORIZED_MESSAGE = "The API does not accept the certificate of its keeper."


class ControlPlane:
    """One control plane. `message` and `available` are those of the last probe."""

    def __init__(
        self,
        slug: str,
        records: ClusterRecords,
        *,
        mark: str,
        program: FindProgram,
        backup_place: Callable[[str], Path],
        throttle: StartupThrottle,
    ) -> None:
        self.slug = slug
        self._throttle = throttle
        self._records = records
        self._backup_directory = backup_place
        self.find_program = program
        self.available = False
        self.message = "The control plane is being created."
        self.failure: BoatyardError | None = None  # of the last pass
        self._passes_begun = self._passes_ended = 0  # passes
        self.is_gone = False
        self.is_resting = False
        self.node_hooks = NodeHooks()
        self.client: KubeClient | None = None
        self._member_clients: list[KubeClient] = []  # each of several API servers by itself
        self._wake = asyncio.Event()
        self._changed = asyncio.Event()
        self._last_notified_state: tuple[object, ...] = ()
        self._probe_failures = ProbeFailures()
        self.is_listening = False  # the API server answers its administrator
        self._file_digests: dict[
            str, str
        ] = {}  # by program: a digest of the files it reads only at its start
        self._bound_version = ""  # the version for which the groups' role bindings were written
        self.supervisor = ProcessSupervisor(
            f"{mark}/{slug}",
            self.run_directory,
            user=self.record.user,
            bounds=CgroupLimits(3 * self.record.members * 1024**3, 2000 * self.record.members),
            program=program,
            on_exit=self._wake.set,
        )

    @property
    def record(self) -> ClusterRecord:
        return self._records.get(self.slug)

    @property
    def directory(self) -> Path:
        return self._records.directory_of(self.slug)

    @property
    def run_directory(self) -> Path:
        return self.directory / "run"

    def wake(self) -> Callable[[], BoatyardError | None]:
        """Starts a pass now. Returns a function that returns the error of the first pass that began after this
        call, or None while there is none."""
        self._wake.set()
        first = self._passes_begun + 1
        return lambda: self.failure if self._passes_ended >= first else None

    async def wait_changed(self) -> None:
        """Waits until the state of the control plane has changed."""
        await self._changed.wait()

    def update_record(self, **fields: object) -> ClusterRecord:
        return self._records.save(msgspec.structs.replace(self.record, **fields))

    @property
    def is_settled(self) -> bool:
        """Whether the desired state is reached."""
        record = self.record
        desired = record.wanted
        if record.leaving or _is_restore_due(record):
            return False
        if desired.rest == RestMode.AWAKE:
            return (
                self.available
                and record.version == desired.version
                and not self.node_hooks.version_message
            )
        return self.is_resting

    async def run_passes(self) -> None:
        """Runs passes until the cluster is gone."""
        await self.supervisor.adopt()
        while not self.is_gone:
            self._wake.clear()
            self._passes_begun += 1
            try:
                failure, wait = await self._run_pass()
            except BoatyardError as error:
                failure, wait = error, 1.0
            except OSError as error:  # for example a full disk: the next pass may succeed
                failure, wait = Unavailable(f"this machine says: {error}"), 1.0
            except Exception:  # a bug in one pass must not leave the cluster without a keeper
                logger.exception("control plane pass crashed", extra={"cluster": self.slug})
                failure, wait = Unavailable("internal error of the keeper"), CRASH_PAUSE_SECONDS
            if failure is not None and str(failure) != str(self.failure):
                logger.warning(
                    "control plane pass failed", extra={"cluster": self.slug, "why": str(failure)}
                )
            self.failure = failure
            self._passes_ended = self._passes_begun
            self._notify_if_changed()
            if wait == _NO_NEXT_PASS:
                return
            try:
                async with asyncio.timeout(wait):
                    await self._wake.wait()
            except TimeoutError:
                continue

    async def _run_pass(self) -> tuple[BoatyardError | None, float]:
        """Runs one pass. Returns its error, if any, and the seconds until the next pass."""
        record, failure = self.record, None
        if record.leaving:
            await self._remove_cluster()
            return None, _NO_NEXT_PASS
        if record.putting_back:
            await self.stop_all(record)
            await upgrade_restore.finish_snapshot_restore(self, record)
            record = self.record
        restore = record.wanted.restore
        if restore is not None and _is_restore_due(record):
            try:
                place = self._backup_directory(restore.backup_key)
                await upgrade_restore.restore(self, record, restore.request, place)
            except BoatyardError as error:
                if not record.version:
                    raise
                failure = error  # the cluster continues with its present objects
            record = self.record
        if record.wanted.rest != RestMode.AWAKE and record.version:
            return failure, await self._put_to_rest(record)
        return failure, await self._run_awake(record)

    # --- awake -------------------------------------------------------------------------------

    async def _run_awake(self, record: ClusterRecord) -> float:
        if self.is_resting:
            self.is_resting = False
            self.set_status(available=False, message="The control plane is waking up.")
        if record.frozen:
            self.supervisor.thaw()
            await self.node_hooks.freeze(frozen=False)
            record = self.update_record(frozen=False)
        await asyncio.gather(self.prepare(record), self._start_etcd_early(record))
        await asyncio.to_thread(self.supervisor.rotate_logs)
        await self.node_hooks.prepare()
        if record.rolling_back:
            await upgrade_restore.roll_back(self, record)
            return 0.0
        if record.version and not self.has_data(record):
            message = "The cluster's objects are gone from this machine; restore a backup."
            self.set_status(available=False, message=message)
            raise Unavailable(message, reason="NoData")
        # A half-finished upgrade is completed first: the old version may be unable to read what the new one wrote.
        target = record.upgrading or record.wanted.version
        running_version = record.version or target
        if target != running_version and target != record.failed_version:
            return await upgrade_restore.upgrade(self, record, target)
        wait = await self.ensure_running(record, [running_version] * record.members)
        if (
            self.available
        ):  # the upgrade is over, so the snapshot for a rollback is not needed any more
            await asyncio.to_thread(
                upgrade_restore.delete_upgrade_snapshots, self.directory / "private"
            )
        return wait

    def has_data(self, record: ClusterRecord) -> bool:
        """Whether the etcd data exists. Without it etcd would start empty, and the empty cluster would look healthy."""
        return all((path / "member").exists() for path in self.data_directories(record))

    def data_directories(self, record: ClusterRecord) -> list[Path]:
        return [self.run_directory / "var" / f"etcd-{n}" for n in range(record.members)]

    async def is_up(self, record: ClusterRecord, versions: Sequence[str]) -> bool:
        """Starts what is missing. True when everything of these versions runs and every API server is ready."""
        return (
            await self.ensure_running(record, versions) == HEALTH_SECONDS
            and await self._are_all_ready()
        )

    async def ensure_running(self, record: ClusterRecord, versions: Sequence[str]) -> float:
        """Starts what is missing of these versions. Returns the seconds until the next pass."""
        record = await control_plane_setup.replace_taken_ports(
            self, record, self._records.used_ports
        )
        netns = components.segment_namespace(record) if record.real else ""
        first = [
            DesiredProcess(component, version, netns)
            for make in (components.etcds, components.api_servers)
            for component, version in zip(make(record), versions, strict=True)
        ]
        # The balancer has no version: restarting it with an upgrade would break every connection.
        first += [DesiredProcess(component, "") for component in components.balancers(record)]
        if not any(
            self.supervisor.is_running(server.name) for server in components.api_servers(record)
        ):
            self.is_listening = False
            if self.available:
                self.set_status(available=False, message="The API server is starting.")
        wait = await self.supervisor.ensure(first, time.monotonic())
        if wait:
            return wait
        if not self.is_listening and not await self._check_listening(record, versions[-1]):
            return PROBE_SECONDS * self._throttle.starting_count
        if not await self.is_api_ready(record):
            return READY_PROBE_SECONDS
        if self._bound_version != versions[-1] and self.client is not None:
            await bind_groups(self.client)
            self._bound_version = versions[-1]
        if not self.available and self._throttle.should_wait(self.slug):
            return READY_PROBE_SECONDS
        controllers = [
            DesiredProcess(
                component, versions[-1], netns, self._file_digests.get(component.program, "")
            )
            for component in components.controllers(record)
        ]
        self.set_status(available=True, message=self.node_hooks.version_message)
        return await self.supervisor.ensure(controllers, time.monotonic()) or HEALTH_SECONDS

    async def _check_listening(self, record: ClusterRecord, version: str) -> bool:
        """Whether the API server answers, so that its administrator can use it. Controllers start once it is ready."""
        assert self.client is not None
        self._throttle.mark_starting(self.slug)
        if not await self._handle_probe(record, await probe_listening(self.client)):
            return False
        self._throttle.mark_started(self.slug)
        self.is_listening = True
        if not self.record.version:
            self.update_record(version=version)
        self._notify()
        return True

    async def prepare(self, record: ClusterRecord) -> None:
        """Writes directories, keys, certificates and configuration. Cheap when everything exists."""
        control_plane_setup.make_directories(record, self.directory)
        if not record.encryption_keys:
            key = base64.b64encode(os.urandom(32)).decode()
            record = self.update_record(encryption_keys=(key,))
        self._file_digests = await asyncio.to_thread(
            control_plane_setup.write_files, record, self.directory
        )
        if self.client is None:
            self.client, self._member_clients = control_plane_setup.make_clients(
                record, self.directory
            )

    async def _start_etcd_early(self, record: ClusterRecord) -> None:
        """Starts the etcd of a new cluster with one member early: it needs no keys, which are created meanwhile."""
        if not record.version and record.members == 1 and not record.real:
            control_plane_setup.make_directories(record, self.directory)
            etcds = [
                DesiredProcess(etcd, record.wanted.version) for etcd in components.etcds(record)
            ]
            await self.supervisor.ensure(etcds, time.monotonic())

    async def _are_all_ready(self) -> bool:
        """Whether each API server is ready, asked directly: the balancer would hide one that is not."""
        return all(
            [await probe_ready(client) is ProbeResult.YES for client in self._member_clients]
        )

    async def is_api_ready(self, record: ClusterRecord) -> bool:
        """Whether the API reports that it is ready."""
        assert self.client is not None
        return await self._handle_probe(record, await probe_ready(self.client))

    async def _handle_probe(self, record: ClusterRecord, result: ProbeResult) -> bool:
        """Whether the probe succeeded. Restarts an API server that has been silent for long, but not one that
        only rejects our certificate."""
        silent_probes = self._probe_failures.record(result)
        if result is ProbeResult.UNAUTHORIZED:
            if self.message != _UNAUTHORIZED_MESSAGE:
                logger.error(
                    "API server rejects the keeper's certificate", extra={"cluster": self.slug}
                )
            self.set_status(available=False, message=_UNAUTHORIZED_MESSAGE)
        if result is not ProbeResult.NO:
            return result is ProbeResult.YES
        if self.available and silent_probes > 1:
            self.set_status(available=False, message="The API does not answer.")
        if not self.available and not self.message:
            self.set_status(available=False, message="The API server is starting.")
        if self._probe_failures.has_reached_limit and self.available is False:
            await self._kill_hung_servers(record)
        return False

    async def _kill_hung_servers(self, record: ClusterRecord) -> None:
        now, bound = time.monotonic(), self._probe_failures.limit * HEALTH_SECONDS
        names = [component.name for component in components.api_servers(record)]
        hung = [name for name in names if self.supervisor.age(name, now) > bound]
        if hung:
            self._probe_failures.double_limit()
            await self.supervisor.stop(hung, kill=True)

    # --- rest --------------------------------------------------------------------------------

    async def _put_to_rest(self, record: ClusterRecord) -> float:
        if record.wanted.rest == RestMode.FROZEN:
            if not record.frozen:
                record = self.update_record(
                    frozen=True
                )  # recorded first, so that the next keeper thaws them
            await self.node_hooks.freeze(frozen=True)
            await self.supervisor.freeze()
            self.set_status(available=False, message="The cluster is frozen.")
        else:
            await self.stop_all(record)
            self.set_status(available=False, message="The cluster is stopped.")
        self.is_resting = True
        return RESTING_PASS_SECONDS

    async def stop_all(self, record: ClusterRecord) -> None:
        """Stops controllers and API servers before etcd, so that their last writes are stored."""
        self.is_listening = False
        self._throttle.remove(self.slug)
        await self.node_hooks.stop()
        last = [component.name for component in components.etcds(record)]
        # An API server that is just starting ignores SIGTERM, and has nothing to lose yet: it is killed.
        await self.supervisor.stop_all(kill=not record.version, last=last)
        await self.node_hooks.clean_up()
        if record.frozen:
            self.update_record(frozen=False)

    def reset_after_restore(self) -> None:
        """Forgets what was written to the API: its objects have been replaced."""
        self._bound_version = ""
        self.supervisor.reset_backoffs()

    # --- the end -----------------------------------------------------------------------------

    async def _remove_cluster(self) -> None:
        self.set_status(available=False, message="The control plane is being removed.")
        self._throttle.remove(self.slug)
        await self.close()
        await self.supervisor.stop_all(kill=True)
        await self.node_hooks.clean_up()
        await asyncio.to_thread(self._records.remove, self.slug)
        self.is_gone = True

    async def stop(self) -> None:
        """Stops the processes without changing the desired state: the next keeper starts them again."""
        await self.stop_all(self.record)

    async def close(self) -> None:
        """Closes our connections; the cluster runs on."""
        clients = [*self._member_clients, *([self.client] if self.client else [])]
        self.client, self._member_clients = None, []
        for client in clients:
            await client.close()

    def set_status(self, *, available: bool, message: str) -> None:
        if (self.available, self.message) != (available, message):
            self.available, self.message = available, message
            self._notify()

    def _notify_if_changed(self) -> None:
        state: tuple[object, ...] = (True,)
        if not self.is_gone:
            failed = (str(self.failure), self._passes_ended) if self.failure else ()
            state = (self.is_settled, failed, self.record.version, self.is_resting)
        if state != self._last_notified_state:
            self._last_notified_state = state
            self._notify()

    def _notify(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()


def _is_restore_due(record: ClusterRecord) -> bool:
    """Whether a desired restore has not been carried out yet."""
    restore = record.wanted.restore
    return restore is not None and restore.request != record.restored
