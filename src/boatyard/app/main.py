"""The entry point: one table of every command. Imports nothing heavy, so that `--help` is quick."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module

from boatyard import __version__
from boatyard.app.flags import add_app_verbs
from boatyard.cli.commands import add_connection, add_verbs

_EPILOG = """\
first steps:
  boatyard demo                                       everything once, in two minutes
  boatyard up                                         Boatyard with a simulated data centre, here
  boatyard create cluster web-1 --template small      then, in another terminal

exit codes:
  0 done   1 failed   2 wrong usage   3 not found   4 refused   5 conflict
  6 quota or capacity   7 still running after the timeout   130 interrupted

`boatyard VERB --help` shows the flags and an example of a verb.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; the result is the exit code."""
    args = make_parser().parse_args(argv)
    try:
        return _load(args.run)(args)
    except BrokenPipeError:
        # The reader of our output has gone (`| head`); Python must not try to flush at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141  # as if SIGPIPE had ended us


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="boatyard",
        description="Orders clusters, drives what has to be done, and takes everything back.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"boatyard {__version__}")
    add_connection(parser)
    subparsers = parser.add_subparsers(title="commands", metavar="VERB", required=True)
    add_verbs(subparsers)
    add_app_verbs(subparsers)
    return parser


def _load(import_path: str) -> Callable[[argparse.Namespace], int]:
    module, _, name = import_path.partition(":")
    run: Callable[[argparse.Namespace], int] = getattr(import_module(module), name)
    return run


if __name__ == "__main__":
    sys.exit(main())
