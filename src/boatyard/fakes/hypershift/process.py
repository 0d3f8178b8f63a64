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
from boatyard.fakes.hypershift.api import Api, ApiError
from boatyard.fakes.hypershift.controller import Player
from boatyard.fakes.hypershift.faults import BadFaults, ControlFile, read_control_file
from boatyard.fakes.hypershift.guest_api import (
    BadAddress,
    answer_for,
    keep_authority,
    read_address,
)
from boatyard.fakes.hypershift.kinds import CLUSTERS
from boatyard.fakes.hypershift.observation import Answering, Manner
from boatyard.fakes.hypershift.pace import Pace

logger = logging.getLogger(__name__)

LOOK_AT_FILE = 0.25


async def play(
    kubeconfig: Path,
    *,
    pace: Pace,
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
    settings = Manner(pace, _read(faults), make_word)
    async with Api(access) as api:
        await _check_access(api, kubeconfig)
        async with _staged(api, settings, answer) as player, asyncio.TaskGroup() as tasks:
            playing = player.run(lambda: on_ready(access.server))
            running = [tasks.create_task(playing, name="player")]
            if faults is not None:
                running.append(tasks.create_task(_follow(player, faults), name="control file"))
            await stop.wait()
            for task in running:
                task.cancel()


async def _check_access(api: Api, kubeconfig: Path) -> None:
    """Raises BadKubeconfig when the server refuses the user. A server that is only away may come back."""
    try:
        await api.list(CLUSTERS, {})
    except ApiError as error:
        if error.code in (401, 403):
            raise BadKubeconfig(
                f"{kubeconfig}: {api.access.server} refuses its user: {error}"
            ) from error


def clock() -> float:
    # Wall-clock time, because the objects carry it: what is under way goes on after a restart.
    return time.time()  # noqa: TID251 - the player is the outside world, with a clock of its own


@contextlib.asynccontextmanager
async def _staged(api: Api, settings: Manner, answer: str) -> AsyncIterator[Player]:
    """The fake, with a server for its hosted API servers if `answer` is set."""
    if not answer:
        yield Player(api, settings, clock)
        return
    host, port = read_address(answer)
    authority = await _authority(api)
    player = Player(api, replace(settings, answering=Answering(answer, authority[0])), clock)
    async with contextlib.AsyncExitStack() as stack:
        try:
            opened = answer_for(player.hosted, host, port, authority, clock())
            await stack.enter_async_context(opened)
        except OSError as error:
            raise BadAddress(f"cannot answer on {answer}: {error.strerror or error}") from error
        yield player


async def _authority(api: Api) -> tuple[str, str]:
    """The hub's certificate authority; waits until the API server answers."""
    while True:
        try:
            return await keep_authority(api, clock())
        except ApiError as error:
            logger.warning("certificate authority not ready", extra={"why": str(error)})
            await asyncio.sleep(1)


async def _follow(player: Player, path: Path) -> None:
    last_edition = _edition(path)
    while True:
        await asyncio.sleep(LOOK_AT_FILE)
        edition = _edition(path)
        if edition == last_edition:
            continue
        last_edition = edition
        try:
            player.follow(_read(path))
            logger.info("control file read", extra={"path": str(path)})
        except BadFaults as error:
            logger.warning("control file not understood", extra={"why": str(error)})


def _read(path: Path | None) -> ControlFile:
    """The content of the control file; an empty one when the file does not exist."""
    if path is None:
        return ControlFile()
    try:
        return read_control_file(path.read_text())
    except FileNotFoundError:
        return ControlFile()
    except OSError as error:
        raise BadFaults(f"cannot read {path}: {error.strerror}") from error
    except BadFaults as error:
        raise BadFaults(f"{path}: {error}") from None


def _edition(path: Path) -> tuple[int, int, int] | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_ino, stat.st_mtime_ns, stat.st_size
