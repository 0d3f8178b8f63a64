"""A TCP load balancer, a program of its own: `python -I -S balancer.py --listen HOST:PORT --upstream HOST:PORT …`.

It runs in front of the API servers of one cluster and imports only small parts of the standard library: it is
up within a tenth of a second and stays small. Upstreams are never reloaded; the program is restarted instead.

* New connections go round robin over the upstreams that answer. One that refuses, or does not answer
  within a second, is skipped: the client waits and never sees it.
* With several upstreams those that are down are tried twice a second, those that are up every five seconds.
* SIGTERM: no new connections; the others have `--drain` seconds to finish.
* `--netns NAME`: listens where it was started and connects inside that network namespace.
* `--user NUMBER`: does what needs root first, and everything else as that user.
"""

from __future__ import annotations

import ctypes
import errno
import os
import select
import signal
import socket
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence

CHUNK_BYTES = 65_536
CONNECT_SECONDS = 1.0
CHECK_UP_SECONDS, CHECK_DOWN_SECONDS = 5.0, 0.5
NETNS_DIRECTORY = "/run/netns"
_CLONE_NEWNET = 0x40000000
_READ, _WRITE = select.EPOLLIN, select.EPOLLOUT
_CHUNKS_PER_TURN = 16  # chunks copied in one direction before other connections have their turn

Address = tuple[str, int]


class UsageError(Exception):
    """The options are invalid or cannot be applied. Shown on stderr; exit code 2."""


class Upstream:
    def __init__(self, address: Address) -> None:
        self.address = address
        self.up = True
        self.checked_at = 0.0

    def __str__(self) -> str:
        return "{}:{}".format(*self.address)


class ConnectionSide:
    """One side of a connection, with the bytes received from it that the other side has not taken yet."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.fd = sock.fileno()
        self.pending = b""
        self.eof_received = False  # it has sent its end of file
        self.eof_sent = False  # it was sent the end of file of the other side
        self.hung_up = (
            False  # the kernel reports both directions closed; there may still be something to read
        )
        self.registered_events: int | None = (
            None  # the events registered with the epoll; None: not registered
        )


class Balancer:
    """The event loop: one epoll, and a handler per file descriptor."""

    def __init__(
        self, listener: socket.socket, upstreams: Sequence[Upstream], drain: float
    ) -> None:
        self._listener = listener
        self._upstreams = deque(upstreams)
        self._drain_seconds = drain
        self._epoll = select.epoll()
        self._handlers: dict[int, Callable[[int], None]] = {}
        self._deadlines: dict[int, tuple[float, Callable[[], None]]] = {}  # of connects, by fd
        self._connections = 0
        self._ends_at: float | None = None

    def run(self, wakeup: socket.socket) -> None:
        self._watch(self._listener.fileno(), _READ, lambda _: self._accept())
        self._watch(wakeup.fileno(), _READ, lambda _: self._stop(wakeup))
        write_message("ready")
        while self._ends_at is None or (self._connections and time.monotonic() < self._ends_at):
            for fd, events in self._epoll.poll(self._seconds_to_next_event()):
                handler = self._handlers.get(fd)
                if handler is not None:
                    handler(events)
            self._run_due_work(time.monotonic())

    def _seconds_to_next_event(self) -> float:
        """Returns the seconds until the next deadline or check; -1 when there is none."""
        moments = [at for at, _ in self._deadlines.values()]
        if self._ends_at is not None:
            moments.append(self._ends_at)
        elif len(self._upstreams) > 1:
            moments += [self._next_check(upstream) for upstream in self._upstreams]
        return max(0.0, min(moments) - time.monotonic()) + 0.001 if moments else -1

    def _run_due_work(self, now: float) -> None:
        for fd, (at, give_up) in list(self._deadlines.items()):
            if at <= now and self._deadlines.pop(fd, None) is not None:
                give_up()
        if len(self._upstreams) > 1 and self._ends_at is None:
            for upstream in self._upstreams:
                if self._next_check(upstream) <= now:
                    self._check_upstream(upstream, now)

    def _next_check(self, upstream: Upstream) -> float:
        return upstream.checked_at + (CHECK_UP_SECONDS if upstream.up else CHECK_DOWN_SECONDS)

    def _stop(self, wakeup: socket.socket) -> None:
        wakeup.recv(64)
        if self._ends_at is not None:
            self._ends_at = time.monotonic()  # the second signal ends it at once
        else:
            self._ends_at = time.monotonic() + self._drain_seconds
            self._unwatch(self._listener.fileno())
            self._listener.close()

    # --- upstreams ---------------------------------------------------------------------------

    def _check_upstream(self, upstream: Upstream, now: float) -> None:
        upstream.checked_at = now
        self._connect(upstream, good=lambda sock: sock.close(), bad=lambda: None)

    def _connect(
        self, upstream: Upstream, *, good: Callable[[socket.socket], None], bad: Callable[[], None]
    ) -> None:
        """Connects, then calls `good` or `bad`. Records whether the upstream answered."""
        sock = socket.socket(family(upstream.address))
        sock.setblocking(False)
        fd = sock.fileno()

        def finish(code: int) -> None:
            self._unwatch(fd)
            self._deadlines.pop(fd, None)
            self._record_result(upstream, code)
            if code == 0:
                good(sock)
            else:
                sock.close()
                bad()

        code = sock.connect_ex(upstream.address)
        if code != errno.EINPROGRESS:
            finish(code)
            return
        self._watch(
            fd, _WRITE, lambda _: finish(sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))
        )
        self._deadlines[fd] = (
            time.monotonic() + CONNECT_SECONDS,
            lambda: finish(errno.ETIMEDOUT),
        )

    def _record_result(self, upstream: Upstream, code: int) -> None:
        upstream.checked_at = time.monotonic()
        if upstream.up != (code == 0):
            upstream.up = code == 0
            write_message(
                f"{upstream} is up" if upstream.up else f"{upstream} is down: {os.strerror(code)}"
            )

    # --- connections -------------------------------------------------------------------------

    def _accept(self) -> None:
        try:
            client, _ = self._listener.accept()
        except OSError as error:  # the client has closed already, or we are out of descriptors
            if error.errno in (errno.EMFILE, errno.ENFILE):
                time.sleep(0.01)
            return
        client.setblocking(False)
        self._connections += 1
        for _ in self._upstreams.copy():
            self._upstreams.rotate(-1)
            if self._upstreams[0].up:
                break
        # Upstreams that are up come first, in turn; the others in case they have just come back.
        order = deque(sorted(self._upstreams, key=lambda upstream: not upstream.up))
        self._try_upstreams(client, order)

    def _try_upstreams(self, client: socket.socket, order: deque[Upstream]) -> None:
        if not order:
            self._close_client(client)
            return
        self._connect(
            order.popleft(),
            good=lambda sock: self._connect_sides(client, sock),
            bad=lambda: self._try_upstreams(client, order),
        )

    def _connect_sides(self, client: socket.socket, upstream: socket.socket) -> None:
        client_half, upstream_half = ConnectionSide(client), ConnectionSide(upstream)
        for half, peer in ((client_half, upstream_half), (upstream_half, client_half)):
            half.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            half.sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            self._handlers[half.fd] = lambda events, h=half, p=peer: self._handle_events(
                h, p, events
            )  # type: ignore[misc]
            self._update_registration(half, peer)

    def _handle_events(self, half: ConnectionSide, peer: ConnectionSide, events: int) -> None:
        """Handles events at `half`: copies what can be copied now, in both directions."""
        half.hung_up = half.hung_up or bool(events & select.EPOLLHUP)
        try:
            if events & select.EPOLLERR:
                raise ConnectionResetError
            copy_bytes(half, peer)
            copy_bytes(peer, half)
        except OSError:
            self._close_sides(half, peer)
            return
        if half.eof_sent and peer.eof_sent:
            self._close_sides(half, peer)
            return
        self._update_registration(half, peer)
        self._update_registration(peer, half)

    def _update_registration(self, half: ConnectionSide, peer: ConnectionSide) -> None:
        mask: int | None = (_READ if not half.eof_received and not half.pending else 0) | (
            _WRITE if peer.pending else 0
        )
        if half.hung_up and (half.eof_received or half.pending):
            mask = None  # the kernel would report the hang-up over and over
        if mask == half.registered_events:
            return
        if mask is None:
            self._epoll.unregister(half.fd)
        elif half.registered_events is None:
            self._epoll.register(half.fd, mask)
        else:
            self._epoll.modify(half.fd, mask)
        half.registered_events = mask

    def _close_sides(self, half: ConnectionSide, peer: ConnectionSide) -> None:
        for side in (half, peer):
            del self._handlers[side.fd]
            if side.registered_events is not None:
                self._epoll.unregister(side.fd)
        peer.sock.close()
        self._close_client(half.sock)

    def _close_client(self, sock: socket.socket) -> None:
        sock.close()
        self._connections -= 1

    def _watch(self, fd: int, mask: int, handler: Callable[[int], None]) -> None:
        self._handlers[fd] = handler
        self._epoll.register(fd, mask)

    def _unwatch(self, fd: int) -> None:
        if self._handlers.pop(fd, None) is not None:
            self._epoll.unregister(fd)


def copy_bytes(source: ConnectionSide, sink: ConnectionSide) -> None:
    """Copies bytes from source to sink without blocking, and then the source's end of file."""
    try:
        for _ in range(_CHUNKS_PER_TURN):
            if source.pending:
                sent = sink.sock.send(source.pending)
                source.pending = source.pending[sent:]
                if source.pending:
                    return
            if source.eof_received:
                break
            source.pending = source.sock.recv(CHUNK_BYTES)
            source.eof_received = not source.pending
    except BlockingIOError:
        return
    if source.eof_received and not source.pending and not sink.eof_sent:
        sink.eof_sent = True
        sink.sock.shutdown(socket.SHUT_WR)


def main(arguments: Sequence[str]) -> int:
    try:
        options = read_options(arguments)
        listener = listen(options.listen)
        if options.netns:
            # The listener stays in its namespace; every socket created from here on is in the new one.
            enter(options.netns)
        if options.user is not None:
            drop_root(options.user)
    except UsageError as problem:
        write_message(f"balancer: {problem}")
        return 2
    waker, wakeup = socket.socketpair()
    waker.setblocking(False)
    signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    Balancer(listener, [Upstream(address) for address in options.upstreams], options.drain).run(
        wakeup
    )
    return 0


class BalancerOptions:
    def __init__(self) -> None:
        self.listen: Address | None = None
        self.upstreams: list[Address] = []
        self.netns = ""
        self.user: int | None = None
        self.drain = 5.0


def read_options(arguments: Sequence[str]) -> BalancerOptions:
    """Parses `--name value` and `--name=value`. argparse would cost a megabyte and ten milliseconds."""
    options, remaining = BalancerOptions(), list(arguments)
    while remaining:
        name, equals, value = remaining.pop(0).partition("=")
        if not equals:
            value = remaining.pop(0) if remaining else ""
        match name:
            case "--listen":
                options.listen = read_address(value)
            case "--upstream":
                options.upstreams.append(read_address(value))
            case "--netns":
                options.netns = value
            case "--user":
                options.user = read_user(value)
            case "--drain":
                options.drain = read_seconds(value)
            case _:
                raise UsageError(f"no such option: {name}")
    if options.listen is None or not options.upstreams:
        raise UsageError("--listen HOST:PORT and at least one --upstream HOST:PORT are needed")
    return options


def read_address(text: str) -> Address:
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit():
        raise UsageError(f"not a HOST:PORT: {text!r}")
    return host.strip("[]"), int(port)


def read_user(text: str) -> int:
    if not text.isdigit():
        raise UsageError(f"not the number of a user: {text!r}")
    return int(text)


def read_seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"not a number of seconds: {text!r}") from None


def listen(address: Address | None) -> socket.socket:
    assert address is not None
    listener = socket.socket(family(address))
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.setblocking(False)
    try:
        listener.bind(address)
        listener.listen(1024)
    except OSError as error:
        raise UsageError(f"cannot listen on {address[0]}:{address[1]}: {error.strerror}") from error
    return listener


def enter(netns: str) -> None:
    if os.geteuid() != 0:
        raise UsageError("--netns needs root")
    try:
        file = os.open(f"{NETNS_DIRECTORY}/{netns}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise UsageError(f"no network namespace {netns!r}: {error.strerror}") from error
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(file, _CLONE_NEWNET) != 0:
        raise UsageError(f"cannot enter {netns!r}: {os.strerror(ctypes.get_errno())}")
    os.close(file)


def drop_root(user: int) -> None:
    """Drops root permanently, with all its groups."""
    try:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    except OSError as error:
        raise UsageError(f"cannot become user {user}: {error.strerror}") from error


def family(address: Address) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address[0] else socket.AF_INET


def write_message(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
