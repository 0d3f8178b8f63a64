"""`boatyard template test FOLDER`: tries a role on the twin, without hardware and without a running Boatyard."""

from __future__ import annotations

import asyncio
import json
import logging
import shutil
import signal
import sys
import tempfile
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from typing import Any

from boatyard.automation.drivers.local.environment import Environment
from boatyard.cli.screen import is_terminal
from boatyard.client.roles import Found, roles_at
from boatyard.model.errors import BoatyardError, NotFound, Refused
from boatyard.model.yaml_text import NotYaml, load_yaml
from boatyard.roles.content import is_digest
from boatyard.template_test.limits_and_secrets import LOG
from boatyard.template_test.published import last_published
from boatyard.template_test.report import Answer, Report
from boatyard.template_test.runner import asked, try_role
from boatyard.template_test.trial import Options
from boatyard.wiring.settings import load
from boatyard.wiring.template_folders import CONTENTS

USAGE = 2


def run(args: Namespace) -> int:
    """Exit code 0 when the role passes every test, 1 when it fails one, 2 for wrong usage."""
    try:
        role_folder = _role(Path(args.path))
        options = _options(args)
        asked(options.only)
    except (BoatyardError, OSError) as error:
        sys.stderr.write(f"boatyard: {error}\n")
        return USAGE
    directory = Path(tempfile.mkdtemp(prefix="boatyard-try-"))
    directory.chmod(0o711)  # runs have user ids of their own, and must pass through
    try:
        _start_log(directory)
        _have_ansible()
        report = asyncio.run(_try(role_folder, directory / "yard", options, load(args).data_dir))
    except BoatyardError as error:
        sys.stderr.write(f"boatyard: the role cannot be tried: {error}\n")
        return 1
    except BaseExceptionGroup as group:
        ours, others = group.split(BoatyardError)
        if others is not None or ours is None:
            raise
        sys.stderr.write(f"boatyard: the role cannot be tried: {ours.exceptions[0]}\n")
        return 1
    except (KeyboardInterrupt, asyncio.CancelledError):
        return 130
    finally:
        if args.keep:
            print(f"kept: {directory}")
        else:
            shutil.rmtree(directory, ignore_errors=True)
    if args.json:
        Path(args.json).write_text(json.dumps(report.plain(), indent=2) + "\n")
    print(report.summary())
    return 0 if report.passed else 1


def _role(path: Path) -> Found:
    role_folders = roles_at(path)
    if len(role_folders) > 1:
        raise Refused(f"{path} has {len(role_folders)} roles; test them one by one")
    return role_folders[0]


def _options(args: Namespace) -> Options:
    if args.part_seconds <= 0:
        raise Refused("--part-seconds must be more than 0")
    return Options(
        seed=args.seed,
        only=tuple(args.only.split(",")) if args.only else (),
        part_seconds=args.part_seconds,
        values=_values(args.values) if args.values else {},
        outside=args.outside,
        older=_older(args) if args.older else None,
    )


def _values(name: str) -> dict[str, Any]:
    try:
        values = load_yaml(Path(name).read_text())
    except NotYaml as error:
        raise Refused(f"{name}: {error}") from error
    if not isinstance(values, dict) or not all(isinstance(key, str) for key in values):
        raise Refused(f"{name}: write one parameter per line, such as `replicas: 2`")
    return values


def _older(args: Namespace) -> Found:
    """The older role: a folder, or the digest of content in the data directory."""
    if not is_digest(args.older):
        return _role(Path(args.older))
    content_folder = load(args).data_dir / CONTENTS / args.older.removeprefix("sha256:")
    if not content_folder.is_dir():
        raise NotFound(f"no content {args.older} is kept here; name its folder with --from")
    return _role(content_folder)


async def _try(role_folder: Found, directory: Path, options: Options, data: Path) -> Report:
    """Tests the role. SIGTERM ends it cleanly: PostgreSQL, the twin and runs are child processes."""
    task = asyncio.current_task()
    if task is not None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    if options.older is None and role_folder.role is not None and "upgrade" in asked(options.only):
        older, reason = await last_published(role_folder.role, data / CONTENTS)
        options = replace(options, older=older, no_older=reason)
    return await try_role(role_folder, directory, options, _tell, _begin)


def _begin(question: str) -> None:
    """Shows on a terminal which test runs, until its answer replaces the line."""
    if is_terminal(sys.stdout):
        print(f"\r\x1b[K… {question}", end="", flush=True)


def _tell(answer: Answer) -> None:
    clear = "\r\x1b[K" if is_terminal(sys.stdout) else ""
    print(clear + "\n".join(answer.lines()), flush=True)


def _have_ansible() -> None:
    """Installs Ansible if needed, before the first test, which must not wait for it."""
    environment = Environment()
    if not environment.is_ready():
        print("Ansible is being set up; that is done once.", flush=True)
        environment.ensure(lambda line: print(f"  {line}", flush=True))


def _start_log(directory: Path) -> None:
    """Sends the log of the test environment to a file: the terminal is for the answers."""
    log_file = directory / "yard" / LOG
    log_file.parent.mkdir(mode=0o711)
    logging.basicConfig(filename=log_file, level=logging.INFO, force=True)
