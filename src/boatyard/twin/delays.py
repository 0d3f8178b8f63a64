"""How long things take in the simulated data centre, by profile name."""

from __future__ import annotations

import zlib
from collections.abc import Mapping

from boatyard.model.errors import Refused

# Seconds from the first request for something until it is ready, per kind of thing.
# A name that starts with "-" is its removal; "agent" is until the agent of a moved host is seen,
# "upgrade" until a control plane has its new version, "rest" and "resume" until it sleeps or is
# awake again, "restore" until its objects are those of a backup.
PROFILES: Mapping[str, Mapping[str, float]] = {
    "instant": {},
    # A cluster in 10 to 15 s, in stages that one can watch.
    "demo": {
        "host": 1.8,
        "-host": 1.5,
        "network": 0.3,
        "port": 0.6,
        "agent": 1.0,
        "subnet": 0.5,
        "binding": 0.3,
        "floating": 0.5,
        "record": 1.0,
        "cluster": 4.0,
        "upgrade": 4.0,
        "rest": 0.5,
        "resume": 1.5,
        "restore": 2.0,
        "backup": 1.0,
        "-backup": 0.3,
        "-cluster": 1.5,
        "node": 2.5,
        "-node": 1.2,
    },
    # Orders of magnitude of real hardware: for stepped time, where minutes cost nothing.
    "real": {
        "host": 240.0,
        "-host": 300.0,
        "network": 3.0,
        "port": 8.0,
        "agent": 60.0,
        "subnet": 10.0,
        "binding": 5.0,
        "floating": 4.0,
        "record": 30.0,
        "cluster": 600.0,
        "upgrade": 1200.0,
        "rest": 5.0,
        "resume": 30.0,
        "restore": 60.0,
        "backup": 20.0,
        "-backup": 2.0,
        "-cluster": 120.0,
        "node": 420.0,
        "-node": 90.0,
    },
}

SPREAD = 0.2  # one host boots up to a fifth slower or faster than the next


class Delays:
    """The delays in force: those of a profile, and overrides for single kinds."""

    def __init__(
        self, profile: str = "instant", overrides: Mapping[str, float] | None = None
    ) -> None:
        if profile not in PROFILES:
            raise Refused(f"no delay profile {profile!r}; there are {', '.join(PROFILES)}")
        self.profile = profile
        self.overrides = dict(overrides or {})
        self._seconds = {**PROFILES[profile], **self.overrides}

    def seconds_for(self, kind: str, key: str) -> float:
        """Seconds for one thing: the same for the same key, a little different for each key."""
        seconds = self._seconds.get(kind, 0.0)
        if not seconds or kind in self.overrides:
            return seconds
        return seconds * (1 - SPREAD + 2 * SPREAD * (zlib.crc32(f"{kind} {key}".encode()) / 2**32))
