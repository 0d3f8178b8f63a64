"""The fake HyperShift as a process: `boatyard player hypershift`."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

from boatyard.fakes.hypershift.access import BadKubeconfig, read_access
from boatyard.fakes.hypershift.api_client import ApiError, ApiServerClient
from boatyard.fakes.hypershift.controller import FakeHyperShift
from boatyard.fakes.hypershift.faults import BadFaults, ControlFile, parse_control_file
from boatyard.fakes.hypershift.hosted_api import (
    BadAddress,
    ensure_authority,
    parse_address,
    serve_hosted_apis,
)
from boatyard.fakes.hypershift.kinds import CLUSTERS
from boatyard.fakes.hypershift.snapshot import FakeSettings, HostedApiAddress
from boatyard.fakes.hypershift.stage_delays import StageDelays

logger = logging.getLogger(__name__)

FILE_POLL_SECONDS = 0.25


async def run_fake(
    kubeconfig: Path,
    *,
    delays: StageDelays,
    faults: Path | None,
    answer: str,
    make_word: Callable[[], str],
    stop: asyncio.Event,
    on_ready: Callable[[str], None],
) -> None:
    """Runs the fake on the server of a kubeconfig until `stop` is set; `on_ready` is called with the server's address.

    With `answer`, HOST:PORT, the hosted API servers are served there. Raises BadKubeconfig or BadAddress when one of
    them cannot be used, BadFaults when the control file exists and cannot be read. Later changes of the control file
    are followed; one that cannot be read changes nothing.
    """
    access = read_access(kubeconfig)
    settings = FakeSettings(delays, _read_control_file(faults), make_word)
    async with ApiServerClient(access) as api:
        await _check_access(api, kubeconfig)
        async with _open_fake(api, settings, answer) as player, asyncio.TaskGroup() as tasks:
            playing = player.run(lambda: on_ready(access.server))
            running = [tasks.create_task(playing, name="player")]
            if faults is not None:
                running.append(
                    tasks.create_task(_watch_control_file(player, faults), name="control file")
                )
            await stop.wait()
            for task in running:
                task.cancel()


async def _check_access(api: ApiServerClient, kubeconfig: Path) -> None:
    """Raises BadKubeconfig when the server refuses the user. A server that is only away may come back."""
    try:
        await api.list(CLUSTERS, {})
    except ApiError as error:
        if error.code in (401, 403):
            raise BadKubeconfig(
                f"{kubeconfig}: {api.access.server} refuses its user: {error}"
            ) from error


def wall_clock() -> float:
    # Wall-clock time, because the objects carry it: what is under way goes on after a restart.
    return time.time()  # noqa: TID251 - the player is the outside world, with a clock of its own


@contextlib.asynccontextmanager
async def _open_fake(
    api: ApiServerClient, settings: FakeSettings, answer: str
) -> AsyncIterator[FakeHyperShift]:
    """The fake, with a server for its hosted API servers if `answer` is set."""
    if not answer:
        yield FakeHyperShift(api, settings, wall_clock)
        return
    host, port = parse_address(answer)
    authority = await _wait_for_authority(api)
    player = FakeHyperShift(
        api, replace(settings, hosted_api=HostedApiAddress(answer, authority[0])), wall_clock
    )
    async with contextlib.AsyncExitStack() as stack:
        try:
            opened = serve_hosted_apis(
                player.find_hosted_cluster, host, port, authority, wall_clock()
            )
            await stack.enter_async_context(opened)
        except OSError as error:
            raise BadAddress(f"cannot answer on {answer}: {error.strerror or error}") from error
        yield player


async def _wait_for_authority(api: ApiServerClient) -> tuple[str, str]:
    """The hub's certificate authority; waits until the API server answers."""
    while True:
        try:
            return await ensure_authority(api, wall_clock())
        except ApiError as error:
            logger.warning("certificate authority not ready", extra={"why": str(error)})
            await asyncio.sleep(1)


async def _watch_control_file(player: FakeHyperShift, path: Path) -> None:
    last_edition = _file_version(path)
    while True:
        await asyncio.sleep(FILE_POLL_SECONDS)
        edition = _file_version(path)
        if edition == last_edition:
            continue
        last_edition = edition
        try:
            player.use_control_file(_read_control_file(path))
            logger.info("control file read", extra={"path": str(path)})
        except BadFaults as error:
            logger.warning("control file not understood", extra={"why": str(error)})


def _read_control_file(path: Path | None) -> ControlFile:
    """The content of the control file; an empty one when the file does not exist."""
    if path is None:
        return ControlFile()
    try:
        return parse_control_file(path.read_text())
    except FileNotFoundError:
        return ControlFile()
    except OSError as error:
        raise BadFaults(f"cannot read {path}: {error.strerror}") from error
    except BadFaults as error:
        raise BadFaults(f"{path}: {error}") from None


def _file_version(path: Path) -> tuple[int, int, int] | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_ino, stat.st_mtime_ns, stat.st_size
