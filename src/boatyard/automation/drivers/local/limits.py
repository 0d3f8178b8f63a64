"""Limits of one run, and of the number of runs at once. Defaults; `app` may choose others."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1024 * 1024


@dataclass(frozen=True)
class RunLimits:
    address_space: int = 2048 * MIB  # bytes, each process
    file_size: int = 128 * MIB
    open_files: int = 1024
    processes: int = 256  # counted per user: applies where each run has its own uid
    directory_bytes: int = 256 * MIB  # bytes in its own directory, a tmpfs
    output_bytes: int = 32 * MIB  # bytes printed; more ends the run
    log_bytes: int = 2 * MIB  # bytes of events that are stored per start
    max_starts: int = 3  # a run that was interrupted this often is not started again
    max_seconds: float = 6 * 3600.0  # seconds, whatever the run asks for

    def to_rlimits(self, *, own_user: bool) -> dict[str, int]:
        """The limits of a process by the names in the module `resource`."""
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
class RunRateLimits:
    """Maximum of runs at once and of starts per minute. Further runs wait."""

    max_runs: int = 8  # on this machine
    max_runs_per_hub: int = 8
    max_runs_per_template: int = 8
    starts_per_minute_per_hub: int = 600
    starts_per_minute_per_template: int = 600
