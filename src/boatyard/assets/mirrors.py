"""The addresses, file names and published checksums of the upstream releases. Used by `installation.py`."""

from __future__ import annotations

import platform
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from boatyard.assets.releases import ETCD_PROGRAMS, KubernetesRelease
from boatyard.model.errors import Unavailable

KUBERNETES_MIRROR = "https://dl.k8s.io/release"
ETCD_MIRROR = "https://github.com/etcd-io/etcd/releases/download"

_ARCHITECTURES = {
    "x86_64": "amd64",
    "aarch64": "arm64",
    "ppc64le": "ppc64le",
    "s390x": "s390x",
}
_HASH = re.compile(r"[0-9a-f]{64}")

ReadText = Callable[[str], str]


@dataclass(frozen=True)
class ReleaseFile:
    """One file to download, the checksum published for it, and the programs that are in it."""

    url: str
    sha256: str
    programs: tuple[str, ...]

    @property
    def file_name(self) -> str:
        return self.url.rpartition("/")[2]


@dataclass(frozen=True)
class Mirrors:
    """The upstream releases, or copies of the same layout."""

    kubernetes: str = KUBERNETES_MIRROR
    etcd: str = ETCD_MIRROR
    machine: str = ""  # as `uname -m` says it; empty: this one

    def list_files(
        self, release: KubernetesRelease, programs: Iterable[str], read: ReadText
    ) -> Iterator[ReleaseFile]:
        """The files to download for these programs. Reads their checksums; Unavailable when one cannot be read."""
        names = set(programs)
        arch = self._architecture()
        etcd_programs = tuple(name for name in ETCD_PROGRAMS if name in names)
        if etcd_programs:
            folder = f"{self.etcd.rstrip('/')}/v{release.etcd}"
            file = f"etcd-v{release.etcd}-linux-{arch}.tar.gz"
            sums_url = f"{folder}/SHA256SUMS"
            yield ReleaseFile(
                f"{folder}/{file}", _find_checksum(read(sums_url), file, sums_url), etcd_programs
            )
        for name in sorted(names - set(ETCD_PROGRAMS)):
            base = self.kubernetes.rstrip("/")
            url = f"{base}/v{release.kubernetes}/bin/linux/{arch}/{name}"
            yield ReleaseFile(
                url, _parse_single_checksum(read(f"{url}.sha256"), f"{url}.sha256"), (name,)
            )

    def _architecture(self) -> str:
        machine = self.machine or platform.machine()
        if machine not in _ARCHITECTURES:
            raise Unavailable(f"there are no releases for {machine} machines")
        return _ARCHITECTURES[machine]


def _parse_single_checksum(text: str, url: str) -> str:
    """The checksum in a file that has only one; some tools write the file's name after it."""
    checksum = (text.split() or [""])[0].lower()
    if not _HASH.fullmatch(checksum):
        raise Unavailable(f"{url} does not hold a checksum")
    return checksum


def _find_checksum(text: str, file: str, url: str) -> str:
    for line in text.splitlines():
        fields = line.split()
        if (
            len(fields) == 2
            and fields[1].lstrip("*") == file
            and _HASH.fullmatch(fields[0].lower())
        ):
            return fields[0].lower()
    raise Unavailable(f"{url} does not list {file}")
