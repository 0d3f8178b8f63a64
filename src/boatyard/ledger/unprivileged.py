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
class ProcessIdentity:
    """The user that a program runs as. Without a user: our own."""

    user: pwd.struct_passwd | None = None
    bypasses_permissions: bool = (
        False  # also through directories that are closed to the user, such as root's home
    )

    def wrap_command(self, words: Sequence[str]) -> list[str]:
        """The command line that runs `words` as this user."""
        if self.user is None:
            return list(words)
        drop = ["setpriv", f"--reuid={self.user.pw_uid}", f"--regid={self.user.pw_gid}"]
        drop += ["--clear-groups"]
        if self.bypasses_permissions:
            # Without the bit access(2), by which PostgreSQL finds its programs, ignores the capability.
            drop += ["--securebits=+no_setuid_fixup"]
            drop += ["--inh-caps=-all,+dac_override", "--ambient-caps=-all,+dac_override"]
        else:
            drop += ["--inh-caps=-all"]
        return [*drop, "--", *words]

    def give_ownership(self, path: Path) -> None:
        """Makes the user the owner of a directory."""
        if self.user is not None:
            os.chown(path, self.user.pw_uid, self.user.pw_gid)


def find_unprivileged(paths: Sequence[Path]) -> ProcessIdentity:
    """Our own identity, or, when we are root, that of an unprivileged user who can reach all of these paths."""
    if os.geteuid() != 0:
        return ProcessIdentity()
    user = next((account for name in _CANDIDATES if (account := _find_user(name))), None)
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
    return ProcessIdentity(
        user, bypasses_permissions=not all(_is_reachable(path) for path in paths)
    )


def _find_user(name: str) -> pwd.struct_passwd | None:
    try:
        return pwd.getpwnam(name)
    except KeyError:
        return None


def _is_reachable(path: Path) -> bool:
    """Whether other users may pass through every directory on the way."""
    resolved = path.resolve()
    return all(part.stat().st_mode & stat.S_IXOTH for part in (resolved, *resolved.parents))
