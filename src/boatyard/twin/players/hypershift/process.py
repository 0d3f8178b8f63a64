"""The player as a process: `boatyard player hypershift`."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from pathlib import Path

from boatyard.twin.players.hypershift.access import read_access
from boatyard.twin.players.hypershift.api import Api
from boatyard.twin.players.hypershift.faults import BadFaults, ControlFile, read_control_file
from boatyard.twin.players.hypershift.pace import Pace
from boatyard.twin.players.hypershift.player import Player
from boatyard.twin.players.hypershift.seeing import Manner

logger = logging.getLogger(__name__)

LOOK_AT_FILE = 0.25


async def play(
    kubeconfig: Path,
    *,
    pace: Pace,
    faults: Path | None,
    make_word: Callable[[], str],
    stop: asyncio.Event,
    on_ready: Callable[[str], None],
) -> None:
    """Plays on the server of a kubeconfig until `stop` is set; `on_ready` is told the server's address.

    BadKubeconfig when that is of no use, BadFaults when the control file is there and not understood. One that
    comes, changes or goes later is followed; a version of it that is not understood changes nothing.
    """
    access = read_access(kubeconfig)
    control = _read(faults)
    async with Api(access) as api:
        player = Player(api, Manner(pace, control, make_word), clock)
        async with asyncio.TaskGroup() as tasks:
            running = [
                tasks.create_task(player.run(lambda: on_ready(access.server)), name="player")
            ]
            if faults is not None:
                running.append(tasks.create_task(_follow(player, faults), name="control file"))
            await stop.wait()
            for task in running:
                task.cancel()


def clock() -> float:
    # Wall-clock time, for objects carry it: what is under way goes on after a restart.
    return time.time()  # noqa: TID251 - the player is the outside world, with a clock of its own


async def _follow(player: Player, path: Path) -> None:
    known = _edition(path)
    while True:
        await asyncio.sleep(LOOK_AT_FILE)
        edition = _edition(path)
        if edition == known:
            continue
        known = edition
        try:
            player.follow(_read(path))
            logger.info("control file read", extra={"path": str(path)})
        except BadFaults as error:
            logger.warning("control file not understood", extra={"why": str(error)})


def _read(path: Path | None) -> ControlFile:
    """What the file says; one that is not there says nothing."""
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
        about = path.stat()
    except OSError:
        return None
    return about.st_ino, about.st_mtime_ns, about.st_size
