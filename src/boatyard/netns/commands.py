"""Runs `ip`. Changes go in one batch per namespace, because starting a process costs more than the change."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Sequence
from typing import Any

from boatyard.model.errors import Unavailable

COMMAND_SECONDS = 20.0


async def run_command(*argv: str, stdin: str = "", seconds: float = COMMAND_SECONDS) -> str:
    """Runs a command and returns its stdout. Unavailable, with its stderr, when it fails or takes too long."""
    return await asyncio.to_thread(_run, argv, stdin, seconds)


async def run_ip_show(netns: str, *arguments: str) -> list[dict[str, Any]]:
    """Returns the entries that `ip … show` lists inside a namespace."""
    entries = json.loads(await run_command("ip", "-n", netns, "-json", *arguments) or "[]")
    assert isinstance(entries, list)
    return [entry for entry in entries if entry]


async def run_ip_batch(netns: str, lines: Sequence[str]) -> None:
    """Runs lines of `ip -batch` inside a namespace, in order. Stops at the first that fails."""
    if lines:
        await run_command("ip", "-n", netns, "-batch", "-", stdin="\n".join(lines) + "\n")


def _run(argv: Sequence[str], stdin: str, seconds: float) -> str:
    try:
        completed = subprocess.run(
            argv, input=stdin, capture_output=True, text=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise Unavailable(f"`{' '.join(argv)}` did not end in {seconds:g} s") from error
    except OSError as error:
        raise Unavailable(f"`{argv[0]}` cannot be run: {error.strerror}") from error
    if completed.returncode != 0:
        error_text = " ".join((completed.stderr or completed.stdout).split())
        raise Unavailable(
            f"`{' '.join(argv)}` failed: {error_text or f'exit code {completed.returncode}'}"
        )
    return completed.stdout
