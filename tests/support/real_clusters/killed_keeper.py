"""A keeper that is killed at every point where something has just been, or is about to be, done; each point once.

Run as `python -m tests.support.real_clusters.killed_keeper <arguments of the keeper>`. It dies only while there is
a file `die-at` in its directory: a pattern, and only points that match it count. Each is written to `died-at`
before the end, and is passed by the next life.
Lives are forked from one process that has imported everything: one costs next to nothing.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from boatyard.platforms.drivers.local import (
    backups,
    certificates,
    control_plane,
    control_plane_setup,
    process_supervisor,
    records,
    server,
    snapshots,
    upgrade_restore,
)

_PDEATHSIG = 1
COME_UP_SECONDS = 30.0
FORGETFUL = "--forgets-schedulers"


def main() -> int:
    forgetful = FORGETFUL in sys.argv
    argv = [word for word in sys.argv[1:] if word != FORGETFUL]
    directory = Path(argv[argv.index("--directory") + 1])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    while True:
        life = os.fork()
        if not life:
            ctypes.CDLL(None).prctl(_PDEATHSIG, signal.SIGKILL)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            KillPoints(directory).plant()
            if forgetful:
                _forget_schedulers()
            return server.main(argv)
        _, status = os.waitpid(life, 0)
        if not os.WIFSIGNALED(status):
            return os.waitstatus_to_exitcode(status)


def _forget_schedulers() -> None:
    """A planted bug: whoever is looked for by mark, no scheduler is found."""
    find = process_supervisor.find_processes
    process_supervisor.find_processes = lambda prefix, users=None: {
        mark: found for mark, found in find(prefix, users).items() if "scheduler" not in mark
    }


class KillPoints:
    def __init__(self, directory: Path) -> None:
        self._wanted = directory / "die-at"
        self._died = directory / "died-at"

    def at(self, label: str) -> None:
        """Ends everything here, if it is wanted and did not happen yet."""
        try:
            pattern = self._wanted.read_text()
        except FileNotFoundError:
            return
        died = self._died.read_text().splitlines() if self._died.exists() else []
        if label in died or not re.search(pattern, label):
            return
        with self._died.open("a") as file:
            file.write(f"{label}\n")
        os.kill(os.getpid(), signal.SIGKILL)

    def around(self, place: object, name: str, label: Callable[..., str]) -> None:
        """Before and after every call of it."""
        function = getattr(place, name)

        def before(*args: Any, **words: Any) -> str:
            text = label(*args, **words)
            self.at(f"before {text}")
            return text

        if asyncio.iscoroutinefunction(function):

            async def slow(*args: Any, **words: Any) -> Any:
                text = before(*args, **words)
                answer = await function(*args, **words)
                self.at(f"after {text}")
                return answer

            setattr(place, name, slow)
            return

        def quick(*args: Any, **words: Any) -> Any:
            text = before(*args, **words)
            answer = function(*args, **words)
            self.at(f"after {text}")
            return answer

        setattr(place, name, quick)

    def plant(self) -> None:
        upgrade_restore.START_DEADLINE_SECONDS, upgrade_restore.MAX_EARLY_EXITS = COME_UP_SECONDS, 2
        self.around(records.ClusterRecords, "save", _saving)
        self.around(records.ClusterRecords, "remove", lambda _, slug: "forgetting")
        self.around(records, "remove_tree", lambda path: f"removing {path.name}")
        self.around(
            process_supervisor, "start_process", lambda spec: f"starting {_component(spec.mark)}"
        )
        self.around(
            process_supervisor.ProcessSupervisor,
            "stop",
            lambda _, names, kill=False: f"stopping {kill}",
        )
        self.around(process_supervisor.ProcessSupervisor, "freeze", lambda _: "freezing")
        self.around(process_supervisor.ProcessSupervisor, "thaw", lambda _: "thawing")
        self.around(snapshots, "take", lambda run, socket, place: f"taking {place.name}")
        self.around(snapshots, "unpack", lambda tool, file, target, **_: f"unpacking {target.name}")
        self.around(snapshots, "swap", lambda target: f"swapping {target.name}")
        self.around(snapshots, "remove_tree", lambda path: f"swapping out {path.name}")
        self.around(control_plane, "bind_groups", lambda _: "binding")
        self.around(certificates, "write_durably", lambda path, *_, **__: f"writing {path.name}")
        self.around(
            control_plane_setup, "write_durably", lambda path, *_, **__: f"writing {path.name}"
        )
        self.around(backups, "write_durably", lambda path, *_, **__: f"writing {path.name}")
        self._while_unpacking()

    def _while_unpacking(self) -> None:
        """While a program of ours runs that nobody would wait for any more."""
        create = asyncio.create_subprocess_exec

        async def created(*args: Any, **words: Any) -> Any:
            process = await create(*args, **words)
            self.at(f"while {Path(args[0]).name} runs")
            return process

        snapshots.asyncio.create_subprocess_exec = created  # type: ignore[attr-defined]


def _saving(kept: records.ClusterRecords, record: records.ClusterRecord) -> str:
    """The record's fields that are different now."""
    before = next((one for one in kept if one.slug == record.slug), None)
    if before is None:
        return "saving it for the first time"
    changed = [
        name
        for name in records.ClusterRecord.__struct_fields__
        if getattr(before, name) != getattr(record, name)
    ]
    return f"saving {' '.join(changed)}"


def _component(mark: str) -> str:
    return " ".join(mark.split("/")[2:])


if __name__ == "__main__":
    sys.exit(main())
