"""`boatyard prove`: kills a worker before and after every write and every effect, and compares what is left."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from argparse import Namespace
from pathlib import Path

from boatyard.client.hub_kubeconfig import flatten_kubeconfig
from boatyard.model.errors import BoatyardError, Refused
from boatyard.proof.platform_profiles import find_profile
from boatyard.proof.runner import ProofOptions, prove
from boatyard.proof.verdict import ProofVerdict
from boatyard.wiring.settings import load_settings

_MOST_SHOWN = 40


def run(args: Namespace) -> int:
    """Exit code 0 when nothing differs, 1 when something does, 2 for an unknown journey."""
    journeys = tuple(args.journeys.split(",")) if args.journeys else ()
    try:
        assets = load_settings(args).assets_dir if args.platform == "local" else None
        hub = _read_hub(args)
        if args.roles and (hub or args.platform != "sim"):
            raise Refused("--roles goes with simulated clusters of our own: leave out the others")
        known_journeys = find_profile(
            args.platform, assets, hub_kubeconfig=hub, roles=args.roles
        ).journeys
        unknown = [name for name in journeys if name not in known_journeys]
        if unknown:
            sys.stderr.write(
                f"there is no journey {unknown[0]!r}; there are {', '.join(known_journeys)}\n"
            )
            return 2
        options = ProofOptions(
            platform=args.platform,
            journeys=journeys,
            every=max(1, args.every),
            environments=args.lanes,
            keep=args.keep,
            hub_kubeconfig=hub,
            roles=args.roles,
            assets=assets,
        )
        verdict = asyncio.run(_run_proof(options))
    except BoatyardError as error:
        sys.stderr.write(f"boatyard: the proof cannot be run: {error}\n")
        return 1
    except (KeyboardInterrupt, asyncio.CancelledError):
        return 130
    if args.json:
        Path(args.json).write_text(json.dumps(verdict.to_dict(), indent=2) + "\n")
    _print_verdict(verdict)
    return 0 if verdict.is_proven else 1


def _read_hub(args: Namespace) -> bytes:
    if not args.hub:
        return b""
    if args.platform != "sim":
        raise Refused("--hub goes with simulated clusters: leave out --platform")
    path = Path(args.hub)
    try:
        return flatten_kubeconfig(path.read_bytes(), "", path.parent)
    except OSError as error:
        raise Refused(f"cannot read the kubeconfig {path}: {error.strerror}") from error


async def _run_proof(options: ProofOptions) -> ProofVerdict:
    """Runs the proof. SIGTERM ends it cleanly: PostgreSQL and the twins are child processes."""
    task = asyncio.current_task()
    if task is not None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await prove(options, _print_progress)


def _print_progress(verdict: ProofVerdict, done: int, total: int) -> None:
    """Shows the progress: one line that is rewritten on a terminal, a line for each tenth elsewhere."""
    counts = f"{len(verdict.killed)} kills, {len(verdict.differences)} differences"
    text = f"{done}/{total} runs, {counts}" if total else "undisturbed runs, to compare with"
    if sys.stdout.isatty():
        sys.stdout.write(f"\r{text}   ")
    elif not done or done * 10 // total > (done - 1) * 10 // total:
        sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _print_verdict(verdict: ProofVerdict) -> None:
    print(f"\n{verdict.format_table()}\n")
    for difference in verdict.differences[:_MOST_SHOWN]:
        print(f"DIFFERS {difference}")
    if len(verdict.differences) > _MOST_SHOWN:
        print(f"… and {len(verdict.differences) - _MOST_SHOWN} more")
    print(verdict.format_summary())
