"""`boatyard assets` as it is typed: what it shows, and how it ends."""

from __future__ import annotations

import io
import os
import re
import signal
import time
from pathlib import Path

import pytest

from boatyard.app.assets import interrupt_on_signals
from boatyard.app.main import main
from boatyard.app.progress import LINE_SECONDS, BarProgress, LineProgress, open_progress
from boatyard.assets import DEFAULT_VERSION, PINNED_VERSIONS, PROGRAMS, Assets
from boatyard.assets.progress import ProgressUnit
from boatyard.assets.releases import release_of
from tests.support.assets import program, put, put_programs


@pytest.fixture(autouse=True)
def _own_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache and a PATH of its own, and nothing else of Boatyard's in the environment."""
    for name in [one for one in os.environ if one.startswith("BOATYARD_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("BOATYARD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.defpath}")


def test_install_list_and_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put_programs(tmp_path / "bin", release_of(DEFAULT_VERSION))
    assert main(["assets", "install", "--by", "found"]) == 0
    folder = tmp_path / "cache" / "assets" / DEFAULT_VERSION
    assert (
        f"{DEFAULT_VERSION}: {len(PROGRAMS)} programs ready in {folder}\n"
        in capsys.readouterr().err
    )

    assert main(["assets", "list"]) == 0
    header, *rows = capsys.readouterr().out.splitlines()
    assert header.split() == ["KUBERNETES", "PROGRAM", "VERSION", "STATE", "FROM"]
    states = {tuple(row.split()[:2]): re.split(r"\s{2,}", row)[3:] for row in rows}
    assert len(rows) == len(PINNED_VERSIONS) * len(PROGRAMS)
    assert states[(DEFAULT_VERSION, "etcd")] == ["ready", f"found: {tmp_path / 'bin' / 'etcd'}"]
    assert states[("1.35.4", "etcd")] == ["missing", "-"]


def test_list_tells_what_is_not_as_it_should_be(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put_programs(tmp_path / "bin", release_of(DEFAULT_VERSION))
    main(["assets", "install", "--by", "found"])
    put(tmp_path / "bin" / "kubelet", program("kubelet", "1.37.0"))
    put_programs(tmp_path / "cache" / "assets" / "1.35.4", release_of("1.35.4"))
    capsys.readouterr()

    main(["assets", "list"])
    rows = capsys.readouterr().out.splitlines()
    assert next(row for row in rows if "changed" in row).split()[:2] == [DEFAULT_VERSION, "kubelet"]
    assert sum("not checked" in row for row in rows) == len(PROGRAMS)


@pytest.mark.parametrize(
    "words, environ",
    [
        (["--dir", "there"], {}),
        ([], {"BOATYARD_ASSETS": "there"}),
    ],
)
def test_where_they_go(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    environ: dict[str, str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    put_programs(tmp_path / "bin", release_of(DEFAULT_VERSION))
    assert main(["assets", "install", "--by", "found", *words]) == 0
    assert Assets(tmp_path / "there").versions() == (DEFAULT_VERSION,)


@pytest.mark.parametrize(
    "words, environ",
    [
        (["--from", "given"], {}),
        ([], {"BOATYARD_ASSETS_FROM": "given"}),
    ],
)
def test_where_they_come_from(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    environ: dict[str, str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    for version in PINNED_VERSIONS:
        put_programs(tmp_path / "given" / version, release_of(version))
    assert main(["assets", "install", "--all", "--by", "found", *words]) == 0
    assert Assets().versions() == PINNED_VERSIONS


def test_a_version_nobody_knows_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["assets", "install", "--version", "1.29"]) == 2
    assert "1.29 is not one of the versions known here: 1.35.4, 1.36.3" in capsys.readouterr().err


def test_a_failure_is_1_and_names_every_way_that_was_tried(
    capsys: pytest.CaptureFixture[str],
) -> None:
    nobody = "http://127.0.0.1:9"
    words = ["--kubernetes-mirror", nobody, "--etcd-mirror", nobody]
    assert main(["assets", "install", "--by", "download", *words]) == 1
    assert main(["assets", "install", "--by", "found"]) == 1
    said = capsys.readouterr().err
    assert "127.0.0.1:9 cannot be reached (Connection refused)\n" in said
    assert f"boatyard: {DEFAULT_VERSION} lacks etcd, etcdutl, kube-apiserver" in said


def test_elsewhere_than_on_a_terminal_a_line_now_and_then() -> None:
    stream, now = io.StringIO(), 0.0
    teller = LineProgress(stream, clock=lambda: now)
    with teller.start_task("building", unit=ProgressUnit.PACKAGES, total=1700) as task:
        for step in range(1, 5):
            now = step * (LINE_SECONDS / 2 + 1)
            task.update(step * 100)
    with teller.start_task(
        "downloading etcd", unit=ProgressUnit.BYTES, total=None, done=2_500_000
    ) as task:
        task.update(2_500_001)
    assert stream.getvalue().splitlines() == [
        "building",
        "building: 200 of 1700 packages, 17s",
        "building: 400 of 1700 packages, 34s",
        "downloading etcd: from 2.5 MB on",
    ]


def test_on_a_terminal_a_bar_that_goes_when_it_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")

    class AssetsTerminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    stream = AssetsTerminal()
    with open_progress(stream) as teller:
        assert isinstance(teller, BarProgress)
        with teller.start_task(
            "downloading [etcd]", unit=ProgressUnit.BYTES, total=10_000_000
        ) as task:
            task.update(5_000_000)
            teller.progress.refresh()
        shown = stream.getvalue()
        teller.show_line("done [all]")
        after = stream.getvalue().removeprefix(shown)
    assert "downloading [etcd]" in shown
    assert "5.0 of 10.0 MB" in shown
    assert "done [all]" in after
    assert "downloading" not in after


class Interrupting:
    """Is interrupted while it is removed, where Python drops what is raised."""

    def __init__(self, number: signal.Signals) -> None:
        self.number = number

    def __del__(self) -> None:
        os.kill(os.getpid(), self.number)


def be_interrupted(number: signal.Signals) -> None:
    with interrupt_on_signals():
        Interrupting(number)
        time.sleep(60)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_an_interrupt_that_python_drops_is_raised_again(number: signal.Signals) -> None:
    handlers = {each: signal.getsignal(each) for each in signal.Signals}
    with pytest.raises(KeyboardInterrupt):
        be_interrupted(number)
    assert {each: signal.getsignal(each) for each in signal.Signals} == handlers
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
