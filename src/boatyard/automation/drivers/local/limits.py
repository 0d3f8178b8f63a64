"""How much a run may take, and how many there are at once. Values; `app` may choose others."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1024 * 1024


@dataclass(frozen=True)
class Limits:
    address_space: int = 2048 * MIB  # bytes, each process
    file_size: int = 128 * MIB
    open_files: int = 1024
    processes: int = 256  # counted by user: holds where each run has a number of its own
    directory: int = 256 * MIB  # bytes in its own directory, which is in memory
    output: int = 32 * MIB  # bytes printed; more ends the run
    story: int = 2 * MIB  # bytes of events kept of each start
    starts: int = 3  # a run that was killed so often is not started again
    longest: float = 6 * 3600.0  # seconds, whatever was asked for

    def by_name(self, *, own_user: bool) -> dict[str, int]:
        """By the names of the module `resource`."""
        limits = {
            "RLIMIT_AS": self.address_space,
            "RLIMIT_FSIZE": self.file_size,
            "RLIMIT_NOFILE": self.open_files,
            "RLIMIT_CORE": 0,
        }
        if own_user:
            limits["RLIMIT_NPROC"] = self.processes
        return limits


@dataclass(frozen=True)
class Pace:
    """Runs at once and starts per minute. What is beyond waits its turn."""

    at_once: int = 8  # on this machine
    at_once_per_hub: int = 8
    at_once_per_template: int = 8
    starts_per_minute_per_hub: int = 600
    starts_per_minute_per_template: int = 600
