"""A copy of the upstream releases on localhost that can be told to misbehave."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from boatyard.assets.mirrors import Mirrors
from boatyard.assets.releases import ETCD_PROGRAMS, PROGRAMS, release_of
from tests.support.assets import etcd_archive, program

MACHINE, ARCH = "x86_64", "amd64"


@dataclass
class Served:
    """One request: the path, what was asked for, and how much of the file was sent."""

    path: str
    range: str
    if_range: str
    sent: int = 0


@dataclass
class Mirror:
    """What it has, and how it behaves. Paths are without the leading slash."""

    port: int = 0
    files: dict[str, bytes] = field(default_factory=dict)
    served: list[Served] = field(default_factory=list)
    cuts: dict[str, list[int]] = field(
        default_factory=dict
    )  # bytes per request, then the line dies
    holds: dict[str, int] = field(default_factory=dict)  # says no more after so many bytes
    held: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)
    ranges: bool = True
    tags: bool = True
    moved: dict[str, str] = field(default_factory=dict)  # where else it is, as upstream does
    statuses: dict[str, list[int]] = field(default_factory=dict)  # answers before the good one

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def mirrors(self) -> Mirrors:
        return Mirrors(
            kubernetes=f"{self.url}/release", etcd=f"{self.url}/etcd/download", machine=MACHINE
        )

    def offer(self, version: str, *, size: int = 0) -> None:
        """Puts a whole release on the shelf."""
        release = release_of(version)
        for name in PROGRAMS:
            if name not in ETCD_PROGRAMS:
                self.put(self.path_of(version, name), program(name, version, size=size))
        archive = etcd_archive(release, arch=ARCH, size=size)
        path = self.path_of(version, "etcd")
        self.files[path] = archive
        folder, _, file = path.rpartition("/")
        other = f"{'0' * 64}  etcd-v{release.etcd}-windows-amd64.zip\n"
        sums = f"{other}{hashlib.sha256(archive).hexdigest()}  {file}\n"
        self.files[f"{folder}/SHA256SUMS"] = sums.encode()

    def put(self, path: str, content: bytes) -> None:
        self.files[path] = content
        self.files[f"{path}.sha256"] = hashlib.sha256(content).hexdigest().encode()

    def path_of(self, version: str, name: str) -> str:
        release = release_of(version)
        if name in ETCD_PROGRAMS:
            return f"etcd/download/v{release.etcd}/etcd-v{release.etcd}-linux-{ARCH}.tar.gz"
        return f"release/v{version}/bin/linux/{ARCH}/{name}"

    def requests(self, path: str) -> list[Served]:
        return [one for one in self.served if one.path == path]


@contextmanager
def run_mirror() -> Iterator[Mirror]:
    mirror = Mirror()
    handler = type("Handler", (_Handler,), {"mirror": mirror})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    mirror.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield mirror
    finally:
        mirror.released.set()
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    mirror: Mirror

    def do_GET(self) -> None:
        path = self.path.lstrip("/")
        asked = self.headers.get("Range", "")
        served = Served(path, asked, self.headers.get("If-Range", ""))
        self.mirror.served.append(served)
        refused = self.mirror.statuses.get(path)
        if refused:
            self._say(refused.pop(0))
        elif path in self.mirror.moved:
            self._say(302, self.mirror.moved[path])
        elif path not in self.mirror.files:
            self._say(404)
        else:
            self._serve(served, self.mirror.files[path], asked)

    def _say(self, status: int, location: str = "") -> None:
        self.send_response(status)
        if location:
            self.send_header("Location", location)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _serve(self, served: Served, content: bytes, asked: str) -> None:
        tag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
        same = served.if_range in ("", tag)
        first = int(asked.removeprefix("bytes=").rstrip("-")) if asked else 0
        if first and self.mirror.ranges and same:
            if first >= len(content):
                self._say(416)
                return
            self.send_response(206)
            span = f"bytes {first}-{len(content) - 1}/{len(content)}"
            self.send_header("Content-Range", span)
        else:
            first = 0
            self.send_response(200)
        if self.mirror.tags:
            self.send_header("ETag", tag)
        self.send_header("Content-Length", str(len(content) - first))
        self.end_headers()
        self._send(served, content[first:])

    def _send(self, served: Served, rest: bytes) -> None:
        cuts = self.mirror.cuts.get(served.path)
        if cuts:
            rest = rest[: cuts.pop(0)]
            self.close_connection = True
        hold = self.mirror.holds.get(served.path)
        self.wfile.write(rest[:hold])
        self.wfile.flush()
        served.sent = len(rest[:hold])
        if hold is not None:
            self.mirror.held.set()
            self.mirror.released.wait()

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""
