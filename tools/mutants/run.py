"""Plants bugs in a copy of the tree, one at a time, and reports those that no test notices. See Makefile.

The bugs stand in the TOML files beside this one; docs/contributing/mutants.md says how to add one.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import random
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Protocol, cast

from mutant_verdict import TREE, VERDICT

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SECONDS = 300.0  # for the tests of one mutant
_CLEANUP_SECONDS = 20.0
# pytest's exit codes.
_PASSED, _FAILED = 0, 1

KILLED = "killed"
SURVIVED = "SURVIVED"
KNOWN = "open"  # it survives, and the entry says why
UNEXPECTED = "KILLED THOUGH OPEN"
STALE = "STALE"
BROKEN = "BROKEN"  # no verdict: the entry or its tests are wrong
SKIPPED = "skipped"
BAD = (SURVIVED, UNEXPECTED, STALE, BROKEN)


@dataclass(frozen=True)
class Mutant:
    """One planted bug, as its TOML file has it."""

    id: str
    file: str
    """Path in the repository."""
    old: str
    """Occurs exactly once in the file."""
    new: str
    tests: tuple[str, ...]
    """Paths or node ids for pytest, of which one must fail."""
    why: str = ""
    needs: str = ""
    """What the tests need that a machine may lack: assets, ansible, root."""
    slow: bool = False
    """Left out of samples."""
    survives: str = ""
    """Why no test notices it yet."""
    group: str = ""
    """The TOML file's name."""

    @property
    def is_quick(self) -> bool:
        return not (self.slow or self.needs or self.survives)


@dataclass(frozen=True)
class Verdict:
    mutant: Mutant
    outcome: str
    detail: str = ""
    seconds: float = 0.0


class EntryError(Exception):
    """The list itself is wrong."""


def main(arguments: Sequence[str]) -> int:
    options = _parser().parse_args(arguments)
    start = time.monotonic()
    try:
        mutants = load(options.list)
        chosen = choose(mutants, options)
        # All of them are looked at, also those that are not run: a sample notices that code has moved.
        verdicts = check_entries(mutants, options.tree)
    except EntryError as error:
        print(error)
        return 2
    wrong = {verdict.mutant.id for verdict in verdicts}
    if not options.check:
        runnable = [mutant for mutant in chosen if mutant.id not in wrong]
        verdicts += run(runnable, options.tree, jobs=options.jobs, seconds=options.seconds)
    report(verdicts, time.monotonic() - start)
    return 1 if any(verdict.outcome in BAD for verdict in verdicts) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tools/mutants/run.py", description=__doc__)
    parser.add_argument(
        "names", nargs="*", help="ids, beginnings of ids, or TOML files; all if none"
    )
    parser.add_argument("--sample", type=int, help="so many quick ones, chosen by --seed")
    parser.add_argument("--seed", default="", help="any text, for example a commit")
    parser.add_argument(
        "--changed", metavar="REF", help="those whose file or tests differ from REF"
    )
    parser.add_argument("--check", action="store_true", help="only whether the entries apply")
    parser.add_argument("--jobs", type=int, default=2, help="copies of the tree, side by side")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for the tests of a mutant")
    parser.add_argument("--tree", type=Path, default=ROOT, help=argparse.SUPPRESS)
    parser.add_argument("--list", type=Path, default=HERE, help=argparse.SUPPRESS)
    return parser


# --- the list ------------------------------------------------------------------------------------


def load(folder: Path) -> list[Mutant]:
    """All entries of all TOML files. EntryError when one is not understood or an id stands twice."""
    mutants: list[Mutant] = []
    for path in sorted(folder.glob("*.toml")):
        for entry in tomllib.loads(path.read_text()).get("mutant", []):
            try:
                tests = tuple(entry.pop("tests"))
                mutants.append(Mutant(**entry, tests=tests, group=path.stem))
            except (KeyError, TypeError) as error:
                raise EntryError(f"{path.name}: {entry.get('id', 'an entry')}: {error}") from error
    repeated = [id for id, count in Counter(mutant.id for mutant in mutants).items() if count > 1]
    if repeated:
        raise EntryError(f"ids that stand twice: {', '.join(repeated)}")
    return mutants


def choose(mutants: Sequence[Mutant], options: argparse.Namespace) -> list[Mutant]:
    chosen = list(mutants)
    if options.names:
        unknown = [name for name in options.names if not any(_is(name, each) for each in mutants)]
        if unknown:
            raise EntryError(f"no such mutant: {', '.join(unknown)}")
        chosen = [each for name in options.names for each in mutants if _is(name, each)]
        chosen = list(dict.fromkeys(chosen))
    if options.changed:
        changed = set(git(options.tree, "diff", "--name-only", options.changed).splitlines())
        chosen = [each for each in chosen if changed & _paths(each)]
    if options.sample is not None:
        quick = [each for each in chosen if each.is_quick]
        chosen = random.Random(options.seed).sample(quick, min(options.sample, len(quick)))
    return chosen


def _is(name: str, mutant: Mutant) -> bool:
    return mutant.group == name or mutant.id.startswith(name)


def _paths(mutant: Mutant) -> set[str]:
    return {mutant.file, *(test.partition("::")[0] for test in mutant.tests)}


def check_entries(mutants: Sequence[Mutant], tree: Path) -> list[Verdict]:
    """What is wrong with entries, found without running anything."""
    verdicts = [verdict for mutant in mutants if (verdict := _check_entry(mutant, tree))]
    wrong = {verdict.mutant.id for verdict in verdicts}
    return verdicts + _check_names([each for each in mutants if each.id not in wrong], tree)


def _check_entry(mutant: Mutant, tree: Path) -> Verdict | None:
    path = tree / mutant.file
    if not path.is_file():
        return Verdict(mutant, STALE, f"{mutant.file} is gone")
    count = path.read_text().count(mutant.old)
    if count != 1:
        return Verdict(mutant, STALE, f"its old text occurs {count} times in {mutant.file}")
    if mutant.old == mutant.new:
        return Verdict(mutant, BROKEN, "old and new are the same")
    missing = [test for test in mutant.tests if not (tree / test.partition("::")[0]).exists()]
    if missing or not mutant.tests:
        return Verdict(mutant, STALE, f"tests that do not exist: {', '.join(missing) or 'all'}")
    if path.suffix == ".py":
        return _check_python(mutant, path)
    return None


def _check_python(mutant: Mutant, path: Path) -> Verdict | None:
    """A change that cannot run at all proves nothing about the tests."""
    text = path.read_text().replace(mutant.old, mutant.new)
    try:
        compile(text, mutant.file, "exec")
    except SyntaxError as error:
        return Verdict(mutant, BROKEN, f"its new text does not compile: {error.msg}")
    return None


def _check_names(mutants: Sequence[Mutant], tree: Path) -> list[Verdict]:
    """Entries that use a name nobody defines: their tests would fail whatever they prove."""
    ruff = Path(sys.executable).parent / "ruff"
    python = [mutant for mutant in mutants if mutant.file.endswith(".py")]
    if not python or not ruff.exists():
        return []
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        # One file per entry, so that one start of ruff reads them all.
        files = {str(number): mutant for number, mutant in enumerate(python)}
        for name, mutant in files.items():
            text = (tree / mutant.file).read_text().replace(mutant.old, mutant.new)
            (Path(folder) / f"{name}.py").write_text(text)
        command = [ruff, "check", "--isolated", "--no-cache", "--select", "F821", "--quiet"]
        command += ["--output-format", "json", folder]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode not in (0, 1):
        raise EntryError(f"ruff cannot read the changed files: {result.stderr.strip()}")
    details: dict[str, str] = {}
    for problem in json.loads(result.stdout):
        line = problem["location"]["row"]
        details.setdefault(Path(problem["filename"]).stem, f"line {line}: {problem['message']}")
    return [Verdict(files[name], BROKEN, detail) for name, detail in details.items()]


# --- running -------------------------------------------------------------------------------------


@dataclass
class Baselines:
    """How each test target ends in the tree as it is. Each is run once, by whoever needs it first."""

    ends: dict[str, Future[Ending]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def of(self, target: str, copy: Copy) -> Ending:
        with self.lock:
            future = self.ends.get(target)
            mine = future is None
            if future is None:
                future = self.ends[target] = Future()
        if mine:
            try:
                future.set_result(copy.run_tests([target]))
            except BaseException as error:  # noqa: BLE001 - told to everybody who waits for it
                future.set_exception(error)
        return future.result()


@dataclass(frozen=True)
class Ending:
    """How pytest ended. `code` is None when it was stopped."""

    code: int | None
    counts: dict[str, int]
    output: str

    @property
    def last_line(self) -> str:
        lines = [line for line in self.output.splitlines() if line.strip()]
        return lines[-1] if lines else "no output"


def run(mutants: Sequence[Mutant], tree: Path, *, jobs: int, seconds: float) -> list[Verdict]:
    """Tries each mutant, so many side by side, each worker in a copy of its own."""
    waiting: queue.SimpleQueue[Mutant] = queue.SimpleQueue()
    # Neighbours in the list have the same tests: their baselines are run early and by one worker.
    for mutant in mutants:
        waiting.put(mutant)
    verdicts: list[Verdict] = []
    baselines = Baselines()
    copies: list[Copy] = []
    failures: list[BaseException] = []

    def work() -> None:
        try:
            with copied(tree, seconds) as copy:
                copies.append(copy)
                while not failures:
                    try:
                        mutant = waiting.get_nowait()
                    except queue.Empty:
                        return
                    verdict = try_mutant(mutant, copy, baselines)
                    verdicts.append(verdict)
                    print(f"{len(verdicts):4}/{len(mutants)}  {_line(verdict)}", flush=True)
        except BaseException as error:  # noqa: BLE001 - told by the thread that waits
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(max(1, min(jobs, len(mutants))))]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            thread.join()
    except KeyboardInterrupt as error:
        failures.append(error)
        for copy in copies:
            copy.interrupt()
        for thread in threads:
            thread.join()
    if failures:
        raise failures[0]
    return verdicts


def try_mutant(mutant: Mutant, copy: Copy, baselines: Baselines) -> Verdict:
    start = time.monotonic()
    outcome, detail = _try(mutant, copy, baselines)
    if mutant.survives and outcome == SURVIVED:
        outcome, detail = KNOWN, mutant.survives
    elif mutant.survives and outcome == KILLED:
        outcome, detail = UNEXPECTED, "take its line `survives` away"
    return Verdict(mutant, outcome, detail, time.monotonic() - start)


def _try(mutant: Mutant, copy: Copy, baselines: Baselines) -> tuple[str, str]:
    ran = skipped = 0
    for target in mutant.tests:
        ending = baselines.of(target, copy)
        ran += ending.counts.get("passed", 0)
        skipped += ending.counts.get("skipped", 0)
        if ending.code != _PASSED:
            return BROKEN, f"{target} fails without the change: {ending.last_line}"
    if ran == 0:
        return (SKIPPED, f"needs {mutant.needs}") if mutant.needs else (BROKEN, "no test is run")
    with copy.changed(mutant):
        ending = copy.run_tests(mutant.tests)
    if ending.code == _PASSED:
        return (SKIPPED, f"needs {mutant.needs}") if mutant.needs and skipped else (SURVIVED, "")
    if ending.code is None:
        return BROKEN, "its tests did not end in time"
    if ending.code != _FAILED:
        return BROKEN, f"pytest ended with {ending.code}: {ending.last_line}"
    if not ending.counts.get("failed in call") and not ending.counts.get("failed in teardown"):
        return BROKEN, "no test failed, only what is prepared for it"
    return KILLED, ""


class Server(Protocol):
    """A process of pytest_server.py."""

    stdin: IO[bytes]
    stdout: IO[bytes]


@dataclass
class Copy:
    """A copy of the tree in which one mutant at a time is planted."""

    path: Path
    seconds: float
    server: Server
    stamp: int = 0
    child: int = 0
    """The process that runs tests now."""

    @contextmanager
    def changed(self, mutant: Mutant) -> Iterator[None]:
        """Plants the bug, and takes it out again."""
        path = self.path / mutant.file
        original = path.read_text()
        self._write(path, original.replace(mutant.old, mutant.new))
        try:
            yield
        finally:
            self._write(path, original)

    def _write(self, path: Path, text: str) -> None:
        """With a time that no version of the file had before: Python compares it with its compiled files."""
        path.write_text(text)
        self.stamp += 10
        moment = 1_000_000_000 + self.stamp
        os.utime(path, (moment, moment))

    def run_tests(self, tests: Sequence[str]) -> Ending:
        """Runs tests until the first fails."""
        with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
            verdict, output = Path(folder) / "verdict.json", Path(folder) / "output"
            environment = {"HYPOTHESIS_STORAGE_DIRECTORY": folder, VERDICT: str(verdict)}
            arguments = ["-x", "-q", "--tb=short", "-p", "no:cacheprovider", "-p", "mutant_verdict"]
            request = {
                "arguments": [*arguments, *tests],
                "output": str(output),
                "environment": environment,
            }
            self.server.stdin.write(json.dumps(request).encode() + b"\n")
            self.server.stdin.flush()
            self.child = int(self.server.stdout.readline())
            code = self._wait(self.child)
            self.child = 0
            text = output.read_text(errors="replace") if output.exists() else ""
            counts = json.loads(verdict.read_text()) if verdict.exists() else {}
        return Ending(code, counts, text)

    def interrupt(self) -> None:
        """As Ctrl-C: fixtures take down what they have started."""
        if self.child:
            with suppress(ProcessLookupError):
                os.kill(self.child, signal.SIGINT)

    def _wait(self, pid: int) -> int | None:
        """The exit code; None when the time was over."""
        if self._has_answered(self.seconds):
            return int(self.server.stdout.readline())
        self.interrupt()
        if not self._has_answered(_CLEANUP_SECONDS):
            os.killpg(pid, signal.SIGKILL)
        self.server.stdout.readline()
        return None

    def _has_answered(self, seconds: float) -> bool:
        return bool(select.select([self.server.stdout], [], [], seconds)[0])


@contextmanager
def copied(tree: Path, seconds: float) -> Iterator[Copy]:
    """A copy of all files that git knows or would add."""
    path = Path(tempfile.mkdtemp(prefix="mutants-"))
    try:
        listed = git(tree, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
        for name in sorted(filter(None, listed.split("\0"))):
            source, target = tree / name, path / name
            if source.is_file() or source.is_symlink():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target, follow_symlinks=False)
        # What Python has compiled is good for the copies too: they have the times of the originals.
        for compiled in {path.parent for path in tree.glob("src/**/__pycache__/*.pyc")}:
            shutil.copytree(compiled, path / compiled.relative_to(tree), dirs_exist_ok=True)
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join((str(path / "src"), str(HERE))),
            TREE: str(path),
        }
        command = [sys.executable, "-u", str(HERE / "pytest_server.py")]
        with subprocess.Popen(
            command,
            cwd=path,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        ) as server:
            yield Copy(path, seconds, cast(Server, server))
    finally:
        shutil.rmtree(path, ignore_errors=True)


def git(tree: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=tree, capture_output=True, text=True, check=True
    ).stdout


# --- the report ----------------------------------------------------------------------------------


def report(verdicts: Sequence[Verdict], seconds: float) -> None:
    counts = Counter(verdict.outcome for verdict in verdicts)
    for outcome in (SKIPPED, KNOWN, *BAD):
        for verdict in verdicts:
            if verdict.outcome == outcome:
                print(_line(verdict))
                if outcome in (SURVIVED, UNEXPECTED):
                    print(f"    {verdict.mutant.file}: {' '.join(verdict.mutant.tests)}")
                    print(f"    {verdict.mutant.why}")
    parts = [f"{count} {outcome}" for outcome, count in sorted(counts.items())]
    print(f"mutants: {', '.join(parts) or 'none run'}; {seconds:.0f} s")


def _line(verdict: Verdict) -> str:
    words = f"{verdict.outcome:<9} {verdict.mutant.id:<34} {verdict.seconds:5.0f} s"
    return f"{words}  {verdict.detail}".rstrip()


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main(sys.argv[1:]))
