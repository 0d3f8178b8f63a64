"""Starts a run in its own namespaces, where it reaches only its own files. Called by the supervisor.

Supervisor → first process of the run's PID namespace → Ansible. The first process ends when the supervisor ends, and
the kernel then kills everything that the run has started. Without namespaces the first process kills what is left.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import sys
from collections.abc import Callable
from typing import NoReturn

from boatyard_inside import kernel
from boatyard_inside.plans import WORK, Plan

Launch = Callable[[Plan], None]  # executes Ansible, or runs it in this process; never returns

EVENTS_FD = "BOATYARD_EVENTS_FD"
BROKEN = 70  # exit code of a run that could not be started
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32")
_SETTINGS = (
    *("ssl", "ca-certificates", "pki", "resolv.conf", "hosts", "nsswitch.conf", "host.conf"),
    *("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "alternatives", "services"),
    *("protocols", "gai.conf"),
)
_DEVICES = ("null", "zero", "full", "random", "urandom")


class Started:
    """The first process of a run, and the pipes of its events and output."""

    def __init__(self, pid: int, events: int, output: int) -> None:
        self.pid = pid
        self.fd = os.pidfd_open(pid)
        self.events = events
        self.output = output

    def signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.fd, number)


def start(directory: str, plan: Plan, launch: Launch) -> Started:
    events, events_write = os.pipe()
    output, output_write = os.pipe()
    alive, alive_write = os.pipe()
    if plan.namespaces:
        if os.geteuid() != 0:
            kernel.own_user_namespace()
        kernel.unshare(kernel.CLONE_NEWPID)
    pid = os.fork()
    if pid == 0:
        try:
            for fd in (events, output, alive_write):
                os.close(fd)
            _be_first(
                directory, plan, launch, events=events_write, output=output_write, alive=alive
            )
        except BaseException as error:  # noqa: BLE001 - the supervisor's code must not continue in this process
            _say(events_write, error)
        finally:
            os._exit(BROKEN)
    for fd in (events_write, output_write, alive):
        os.close(fd)
    started = Started(pid, events, output)
    os.write(alive_write, b"1")
    os.close(alive_write)
    return started


def _say(events: int, error: BaseException) -> None:
    """Reports why the run could not start, for the operator's log; it is not shown in the log of the run."""
    os.write(events, json.dumps({"kind": "broken", "text": str(error)}).encode() + b"\n")


def _be_first(
    directory: str, plan: Plan, launch: Launch, *, events: int, output: int, alive: int
) -> None:
    kernel.end_with_parent()
    if not os.read(alive, 1):
        os._exit(BROKEN)  # the supervisor ended before we were tied to it
    os.close(alive)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    os.setsid()
    _redirect(output)
    os.umask(0o077)
    work = os.path.join(directory, WORK)
    if plan.namespaces:
        kernel.unshare(kernel.CLONE_NEWNS | kernel.CLONE_NEWIPC | kernel.CLONE_NEWUTS)
        kernel.set_hostname("boatyard")
        _make_root(work, plan)
    else:
        kernel.adopt_orphans()
        os.makedirs(plan.home, mode=0o700, exist_ok=True)
    _fill(plan)
    child = os.fork()
    if child == 0:
        try:
            _be_ansible(plan, launch, events)
        except BaseException as error:  # noqa: BLE001 - as above
            _say(events, error)
        finally:
            os._exit(BROKEN)
    os.close(events)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 1)
    os.dup2(null, 2)
    _wait_for(child, plan)


def _redirect(output: int) -> None:
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    for fd in (null, output):
        if fd > 2:
            os.close(fd)


def _make_root(root: str, plan: Plan) -> None:
    """Makes the run's own file system: it reads the system's programs, writes its directory, and sees nothing else."""
    kernel.make_mounts_private()
    kernel.mount_memory(root, "mode=755,size=4m")
    os.umask(0o022)
    for path in _SYSTEM:
        if os.path.islink(path):
            os.symlink(os.readlink(path), root + path)
        elif os.path.isdir(path):
            _offer(path, root + path)
    for path in plan.reach:
        if not path.startswith(tuple(f"{system_path}/" for system_path in _SYSTEM)):
            _offer(path, root + path)
    for name in _SETTINGS:
        if os.path.exists(f"/etc/{name}"):
            _offer(f"/etc/{name}", f"{root}/etc/{name}")
    _name_user(root, plan)
    if plan.content[0]:
        _offer(plan.content[0], root + plan.content[1])
    for name in _DEVICES:
        _make_place(f"/dev/{name}", f"{root}/dev/{name}")
        kernel.bind(f"/dev/{name}", f"{root}/dev/{name}")
    os.symlink("/proc/self/fd", f"{root}/dev/fd")
    os.mkdir(f"{root}/dev/shm")
    kernel.mount_memory(f"{root}/dev/shm", "mode=1777,size=16m")
    os.mkdir(f"{root}/proc")
    kernel.mount_processes(f"{root}/proc")
    os.makedirs(root + plan.home)
    kernel.mount_memory(root + plan.home, f"mode=700,size={plan.memory}")
    if os.path.isdir(f"{root}/tmp"):  # something was mounted below it
        os.chmod(f"{root}/tmp", 0o1777)
    else:
        os.symlink(f"{plan.home}/tmp", f"{root}/tmp")
    os.umask(0o077)
    kernel.change_root(root)


def _offer(source: str, target: str) -> None:
    _make_place(source, target)
    kernel.bind_read_only(source, target)


def _make_place(source: str, target: str) -> None:
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
        return
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with open(target, "ab"):
        pass


def _name_user(root: str, plan: Plan) -> None:
    """Writes passwd and group, so that programs find a name for their uid; no account is created."""
    user = os.getuid() if plan.user is None else plan.user
    with open(f"{root}/etc/passwd", "w") as file:
        file.write(f"root:x:0:0::/:/bin/false\nrun:x:{user}:{user}::{plan.home}:/bin/sh\n")
    with open(f"{root}/etc/group", "w") as file:
        file.write(f"root:x:0:\nrun:x:{user}:\n")


def _fill(plan: Plan) -> None:
    created_paths = [plan.home]
    for folder in ("tmp", *sorted({os.path.dirname(path) for path in (*plan.files, *plan.links)})):
        current = plan.home
        for part in filter(None, folder.split("/")):
            current = os.path.join(current, part)
            if current not in created_paths:
                os.mkdir(current, 0o700)
                created_paths.append(current)
    for path, text in plan.files.items():
        created_paths.append(os.path.join(plan.home, path))
        with open(
            os.open(created_paths[-1], os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb"
        ) as file:
            file.write(text.encode("utf-8", "surrogatepass"))
    for path, target in plan.links.items():
        os.symlink(target, os.path.join(plan.home, path))
    if plan.user is not None:
        for created_path in created_paths:
            os.chown(created_path, plan.user, plan.user)


def _be_ansible(plan: Plan, launch: Launch, events: int) -> None:
    for name, limit in plan.limits.items():
        kind = getattr(resource, name)
        hard = resource.getrlimit(kind)[1]
        limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(kind, (limit, limit))
    if plan.user is not None:
        os.setgroups([])
        os.setresgid(plan.user, plan.user, plan.user)
        os.setresuid(plan.user, plan.user, plan.user)
    kernel.give_up_rights()
    os.chdir(plan.home)
    os.set_inheritable(events, True)
    os.environ.clear()
    os.environ.update({**plan.environ, EVENTS_FD: str(events)})
    launch(plan)


def execute(plan: Plan) -> None:
    """Executes the command line of the plan in place of this process."""
    os.execve(plan.argv[0], plan.argv, dict(os.environ))


def _wait_for(child: int, plan: Plan) -> NoReturn:
    """Reaps orphans until Ansible has ended, kills what is left without namespaces, and exits with Ansible's code."""

    def pass_on(signal_number: int, _: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal_number)

    signal.signal(signal.SIGTERM, pass_on)
    while True:
        pid, status = os.wait()
        if pid == child:
            break
    code = os.waitstatus_to_exitcode(status)
    if not plan.namespaces:
        end_everybody(plan.user)
    os._exit(code if code >= 0 else 128 - code)


def end_everybody(user: int | None) -> None:
    """Without namespaces: kills all descendants of this process, including orphans."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        if user is not None:
            _kill_all_of(user)
        else:
            for pid in _children():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        try:
            os.wait()
        except ChildProcessError:
            return


def _kill_all_of(user: int) -> None:
    """Kills all processes of the user with one kill(-1) as that user: none can escape by forking."""
    pid = os.fork()
    if pid == 0:
        with contextlib.suppress(OSError):
            os.setresuid(user, user, user)
            os.kill(-1, signal.SIGKILL)
        os._exit(0)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0)


def _children() -> list[int]:
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        return [int(pid) for pid in file.read().split()]


def main(arguments: list[str]) -> None:
    """Tests whether the kernel allows namespaces: exit code 0 when it does. `arguments`: an empty directory."""
    if os.geteuid() != 0:
        kernel.own_user_namespace()
    kernel.unshare(kernel.CLONE_NEWPID)
    pid = os.fork()
    if pid == 0:
        code = 1
        with contextlib.suppress(OSError):
            kernel.unshare(kernel.CLONE_NEWNS | kernel.CLONE_NEWIPC | kernel.CLONE_NEWUTS)
            _make_root(arguments[0], _NOTHING)
            code = 0
        os._exit(code)
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


_NOTHING = Plan(
    attempt=0,
    start=0,
    user=None,
    namespaces=True,
    home="/run/boatyard",
    memory=1 << 20,
    reach=(),
    content=("", ""),
    files={},
    links={},
    argv=(),
    environ={},
    limits={},
    time_limit=0,
    output_limit=0,
    events_limit=0,
    hidden=(),
)
