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

from boatyard.automation.drivers.local.ansible_environment import AnsibleEnvironment
from boatyard.cli.screen import is_terminal
from boatyard.client.local_roles import LocalRole, read_roles
from boatyard.model.errors import BoatyardError, NotFound, Refused
from boatyard.model.yaml_text import NotYaml, load_yaml
from boatyard.roles.content import is_digest
from boatyard.template_test.limits_and_secrets import LOG_FILE
from boatyard.template_test.published_content import find_published
from boatyard.template_test.report import QuestionResult, RoleTestReport
from boatyard.template_test.runner import select_questions, try_role
from boatyard.template_test.trial import RoleTestOptions
from boatyard.wiring.settings import load_settings
from boatyard.wiring.template_folders import CONTENTS_FOLDER

USAGE = 2


def run(args: Namespace) -> int:
    """Exit code 0 when the role passes every test, 1 when it fails one, 2 for wrong usage."""
    try:
        role_folder = _read_role(Path(args.path))
        options = _parse_options(args)
        select_questions(options.only)
    except (BoatyardError, OSError) as error:
        sys.stderr.write(f"boatyard: {error}\n")
        return USAGE
    directory = Path(tempfile.mkdtemp(prefix="boatyard-try-"))
    directory.chmod(0o711)  # runs have user ids of their own, and must pass through
    try:
        _start_log(directory)
        _ensure_ansible()
        report = asyncio.run(
            _test_role(role_folder, directory / "yard", options, load_settings(args).data_dir)
        )
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
        Path(args.json).write_text(json.dumps(report.to_dict(), indent=2) + "\n")
    print(report.format_summary())
    return 0 if report.has_passed else 1


def _read_role(path: Path) -> LocalRole:
    role_folders = read_roles(path)
    if len(role_folders) > 1:
        raise Refused(f"{path} has {len(role_folders)} roles; test them one by one")
    return role_folders[0]


def _parse_options(args: Namespace) -> RoleTestOptions:
    if args.part_seconds <= 0:
        raise Refused("--part-seconds must be more than 0")
    return RoleTestOptions(
        seed=args.seed,
        only=tuple(args.only.split(",")) if args.only else (),
        part_seconds=args.part_seconds,
        values=_read_values(args.values) if args.values else {},
        outside=args.outside,
        older=_read_older_role(args) if args.older else None,
    )


def _read_values(name: str) -> dict[str, Any]:
    try:
        values = load_yaml(Path(name).read_text())
    except NotYaml as error:
        raise Refused(f"{name}: {error}") from error
    if not isinstance(values, dict) or not all(isinstance(key, str) for key in values):
        raise Refused(f"{name}: write one parameter per line, such as `replicas: 2`")
    return values


def _read_older_role(args: Namespace) -> LocalRole:
    """The older role: a folder, or the digest of content in the data directory."""
    if not is_digest(args.older):
        return _read_role(Path(args.older))
    content_folder = (
        load_settings(args).data_dir / CONTENTS_FOLDER / args.older.removeprefix("sha256:")
    )
    if not content_folder.is_dir():
        raise NotFound(f"no content {args.older} is kept here; name its folder with --from")
    return _read_role(content_folder)


async def _test_role(
    role_folder: LocalRole, directory: Path, options: RoleTestOptions, data: Path
) -> RoleTestReport:
    """Tests the role. SIGTERM ends it cleanly: PostgreSQL, the twin and runs are child processes."""
    task = asyncio.current_task()
    if task is not None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    if (
        options.older is None
        and role_folder.role is not None
        and "upgrade" in select_questions(options.only)
    ):
        older, reason = await find_published(role_folder.role, data / CONTENTS_FOLDER)
        options = replace(options, older=older, no_older=reason)
    return await try_role(role_folder, directory, options, _print_answer, _show_running_test)


def _show_running_test(question: str) -> None:
    """Shows on a terminal which test runs, until its answer replaces the line."""
    if is_terminal(sys.stdout):
        print(f"\r\x1b[K… {question}", end="", flush=True)


def _print_answer(answer: QuestionResult) -> None:
    clear = "\r\x1b[K" if is_terminal(sys.stdout) else ""
    print(clear + "\n".join(answer.format_lines()), flush=True)


def _ensure_ansible() -> None:
    """Installs Ansible if needed, before the first test, which must not wait for it."""
    environment = AnsibleEnvironment()
    if not environment.is_ready():
        print("Ansible is being set up; that is done once.", flush=True)
        environment.ensure(lambda line: print(f"  {line}", flush=True))


def _start_log(directory: Path) -> None:
    """Sends the log of the test environment to a file: the terminal is for the answers."""
    log_file = directory / "yard" / LOG_FILE
    log_file.parent.mkdir(mode=0o711)
    logging.basicConfig(filename=log_file, level=logging.INFO, force=True)
