"""Runs a program as an unprivileged user when we are root. Called for the embedded PostgreSQL, which refuses root."""

from __future__ import annotations

import os
import pwd
import shutil
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from boatyard.model.errors import Refused

_CANDIDATES = ("postgres", "nobody", "daemon")


@dataclass(frozen=True)
class Identity:
    """The user that a program runs as. Without a user: our own."""

    user: pwd.struct_passwd | None = None
    reach: bool = False  # also through directories that are closed to the user, such as root's home

    def command(self, words: Sequence[str]) -> list[str]:
        """The command line that runs `words` as this user."""
        if self.user is None:
            return list(words)
        drop = ["setpriv", f"--reuid={self.user.pw_uid}", f"--regid={self.user.pw_gid}"]
        drop += ["--clear-groups"]
        if self.reach:
            # Without the bit access(2), by which PostgreSQL finds its programs, ignores the capability.
            drop += ["--securebits=+no_setuid_fixup"]
            drop += ["--inh-caps=-all,+dac_override", "--ambient-caps=-all,+dac_override"]
        else:
            drop += ["--inh-caps=-all"]
        return [*drop, "--", *words]

    def give(self, path: Path) -> None:
        """Makes the user the owner of a directory."""
        if self.user is not None:
            os.chown(path, self.user.pw_uid, self.user.pw_gid)


def unprivileged(paths: Sequence[Path]) -> Identity:
    """Our own identity, or, when we are root, that of an unprivileged user who can reach all of these paths."""
    if os.geteuid() != 0:
        return Identity()
    user = next((account for name in _CANDIDATES if (account := _user(name))), None)
    if user is None:
        raise Refused(
            f"PostgreSQL does not run as root and none of {', '.join(_CANDIDATES)} exists here; "
            "run as an ordinary user, or give --database-url"
        )
    if shutil.which("setpriv") is None:
        raise Refused(
            "PostgreSQL does not run as root and setpriv is missing; "
            "install util-linux, run as an ordinary user, or give --database-url"
        )
    return Identity(user, reach=not all(_reaches(path) for path in paths))


def _user(name: str) -> pwd.struct_passwd | None:
    try:
        return pwd.getpwnam(name)
    except KeyError:
        return None


def _reaches(path: Path) -> bool:
    """Whether other users may pass through every directory on the way."""
    resolved = path.resolve()
    return all(part.stat().st_mode & stat.S_IXOTH for part in (resolved, *resolved.parents))
