"""A server that has imported Ansible and forks a supervisor per run. Boatyard starts it and talks to it on stdin.

It ends with Boatyard, when the other end of the socket closes for any reason. Runs go on: each has its own session,
and its supervisor needs no other process.
"""

from __future__ import annotations

import array
import contextlib
import gc
import os
import signal
import socket
import sys

from boatyard_inside import supervise, warm

READY = b"ready"
_LONGEST = 4096


def main(arguments: list[str]) -> None:
    control = socket.socket(fileno=os.dup(0))
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    warm.warm_up()
    gc.collect()
    gc.freeze()  # so that the collector of a fork does not touch and copy shared pages
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the supervisors
    try:
        control.send(READY)
        _serve(control)
    except (BrokenPipeError, ConnectionResetError):
        return


def _serve(control: socket.socket) -> None:
    while True:
        message, ancillary, _, _ = control.recvmsg(
            _LONGEST, socket.CMSG_SPACE(array.array("i").itemsize)
        )
        if not message:
            return
        descriptors = array.array("i")
        for level, kind, data in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                descriptors.frombytes(data[: len(data) - len(data) % descriptors.itemsize])
        if os.fork() == 0:
            _become_supervisor(os.fsdecode(message), descriptors[0])
        os.close(descriptors[0])


def _become_supervisor(directory: str, ready_fd: int) -> None:
    try:
        os.setsid()
        os.chdir("/")
        # Close the server's descriptors: socket, log. Each number is replaced by /dev/null and not freed, because
        # some Python object may still close the number that it had.
        null = os.open(os.devnull, os.O_RDWR)
        for name in os.listdir("/proc/self/fd"):
            if int(name) not in (0, ready_fd, null):
                with contextlib.suppress(OSError):  # the one we listed with is closed
                    os.fstat(int(name))
                    os.dup2(null, int(name), inheritable=int(name) < 3)

        def ready() -> None:
            os.write(ready_fd, b"1")
            os.close(ready_fd)

        supervise.supervise(directory, warm.run_playbook, ready)
    finally:
        os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
