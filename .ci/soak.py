"""`make soak`: the long forms of the proofs that `make test` runs in short, and every planted bug.

They run one after another, because some of them judge how quickly something comes back. ONLY="storm cuts" chooses.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTEST = (sys.executable, "-m", "pytest", "-q", "-s")


@dataclass(frozen=True)
class Proof:
    name: str
    promise: str
    minutes: float  # on two quiet cores
    command: tuple[str, ...]


PROOFS = (
    Proof(
        "storm",
        "two operators under load, the leader killed at random for ten minutes",
        13,
        (*PYTEST, "tests/faults/test_storm.py"),
    ),
    Proof(
        "cuts",
        "the way to a hub cut for three minutes in create, scale and delete",
        12,
        (*PYTEST, "tests/faults/test_cuts.py"),
    ),
    Proof(
        "troubles",
        "five seconds of latency on every request to a hub, beside other faults that last",
        5,
        (*PYTEST, "tests/faults/test_troubles.py"),
    ),
    Proof(
        "kills",
        "the leader killed at every write and effect of an order's life",
        15,
        (*PYTEST, "tests/faults/test_kills.py"),
    ),
    Proof(
        "prove",
        "a worker killed at every point, with simulated clusters",
        3,
        (*PYTEST, "tests/e2e/test_prove.py"),
    ),
    Proof(
        "prove-local",
        "workers and the keeper killed at every point, with real clusters",
        10,
        (*PYTEST, "tests/e2e/test_prove_local.py"),
    ),
    Proof(
        "prove-hub",
        "service and operator killed at every point, with orders on a Kubernetes hub",
        10,
        (*PYTEST, "tests/e2e/test_prove_hub.py"),
    ),
    Proof(
        "prove-roles",
        "a worker killed at every point around the runs of roles",
        15,
        (*PYTEST, "tests/e2e/test_prove_roles.py"),
    ),
    Proof(
        "hub-killed",
        "the leader of a hub with HyperShift killed again and again in every stage",
        3,
        (*PYTEST, "tests/e2e/test_kube_hub_killed.py"),
    ),
    Proof(
        "hypershift",
        "the fake HyperShift killed eight times while clusters come and go",
        3,
        (*PYTEST, "tests/kube/test_hypershift_player_outages.py"),
    ),
    Proof(
        "journeys",
        "every case of the journeys, and a death at every place, also on a Kubernetes hub",
        6,
        (
            *PYTEST,
            *(f"tests/journeys/test_{name}.py" for name in ("dying", "delete", "faults", "scale")),
            *(f"tests/journeys/test_{name}.py" for name in ("rest", "trouble")),
        ),
    ),
    Proof(
        "template-test",
        "every faulty role, and every one that comes along, is asked every question",
        6,
        (*PYTEST, "tests/automation/test_trying.py"),
    ),
    Proof(
        "mutants",
        "every planted bug is found by the tests that must find it",
        25,
        (sys.executable, "tools/mutants/run.py"),
    ),
)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="make soak", description=__doc__)
    parser.add_argument("names", nargs="*", help="proofs to run; all when none is named")
    parser.add_argument("--list", action="store_true", help="only list them with their minutes")
    options = parser.parse_args(arguments)

    known = [proof.name for proof in PROOFS]
    unknown = sorted(set(options.names) - set(known))
    if unknown:
        print(f"no such proof: {', '.join(unknown)}; there are: {', '.join(known)}")
        return 2
    proofs = [proof for proof in PROOFS if proof.name in (options.names or known)]
    if options.list:
        for proof in proofs:
            print(f"{proof.name:<12} {proof.minutes:4.0f} min  {proof.promise}")
        return 0
    broken = [proof.name for proof in proofs if not holds(proof)]
    print(f"\nsoak: {', '.join(broken)} FAILED" if broken else "\nsoak: good")
    return 1 if broken else 0


def holds(proof: Proof) -> bool:
    print(f"\n== {proof.name}: {proof.promise} (about {proof.minutes:g} min)", flush=True)
    start = time.monotonic()
    environ = {**os.environ, "BOATYARD_SOAK": "1"}
    code = subprocess.run(proof.command, cwd=ROOT, env=environ, check=False).returncode
    minutes = (time.monotonic() - start) / 60
    print(f"== {proof.name}: {'holds' if code == 0 else 'FAILED'} after {minutes:.1f} min")
    return code == 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
