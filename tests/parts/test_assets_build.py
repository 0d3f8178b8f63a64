"""Building: only when nothing else helps and something has changed; a bad build costs nothing. `go` is a stand-in."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from boatyard.assets import DEFAULT_VERSION, PROGRAMS
from boatyard.assets.downloads import DownloadRetryPolicy
from boatyard.assets.installation import InstallMethod, install_programs
from boatyard.assets.manifest import ProgramSource
from boatyard.assets.mirrors import Mirrors
from boatyard.assets.progress import ProgressUnit
from boatyard.assets.releases import release_of
from boatyard.model.errors import Refused, Unavailable
from tests.support.assets import ProgressListener, put_programs
from tests.support.build_machine import BuildMachine
from tests.support.processes import is_alive

RELEASE = release_of(DEFAULT_VERSION)


@pytest.fixture
def machine(tmp_path: Path) -> BuildMachine:
    return BuildMachine(tmp_path)


def test_one_file_is_every_program(machine: BuildMachine) -> None:
    heard = machine.build()

    recorded = machine.assets.installed_records(DEFAULT_VERSION)
    assert set(recorded) == set(PROGRAMS)
    for name, record in recorded.items():
        assert os.readlink(machine.assets.program(DEFAULT_VERSION, name)) == "kube"
        assert (record.source, record.place) == (ProgramSource.BUILT, "go1.26.9")
    assert len({record.sha256 for record in recorded.values()}) == 1
    assert [(one.unit, one.total, one.steps) for one in heard.tasks] == [
        (ProgressUnit.MODULES, None, [0, 1]),
        (ProgressUnit.PACKAGES, 3, [0, 1, 2]),
    ]
    assert machine.left() == []


def test_how_the_compiler_is_called(machine: BuildMachine, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GOOS", "GOARCH", "GO111MODULE", "GOWORK"):
        monkeypatch.setenv(name, "planted")
    monkeypatch.setenv("GOPROXY", "https://modules.example.com")
    machine.build()

    listed, built = machine.calls()
    assert listed == "list -mod=readonly -deps ."
    assert built.startswith("build -v -mod=readonly -buildvcs=false -trimpath -ldflags=-s -w -X ")
    assert built.endswith(" -o kube .")
    for package in ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version"):
        assert f"-X {package}.gitVersion=v{DEFAULT_VERSION} " in built
        assert f"-X {package}.gitMinor={RELEASE.minor.partition('.')[2]} " in built
        assert f"-X {package}.buildDate={RELEASE.published}" in built
    environ = (machine.folder / "environment").read_text().splitlines()
    assert {"CGO_ENABLED=0", "GOTOOLCHAIN=local", "GOWORK=off"} <= set(environ)
    assert "GOPROXY=https://modules.example.com" in environ
    assert not any(line.endswith("=planted") for line in environ)


def test_the_same_recipe_is_not_built_twice(machine: BuildMachine) -> None:
    machine.build()
    machine.calls()
    machine.build()
    assert machine.calls() == []


@pytest.mark.parametrize("file", ["main.go", f"{RELEASE.minor}/go.mod", f"{RELEASE.minor}/go.sum"])
def test_a_changed_recipe_is_built_anew(machine: BuildMachine, file: str) -> None:
    machine.build()
    before = machine.assets.installed_records(DEFAULT_VERSION)["etcd"].recipe
    with (machine.folder / "recipe" / file).open("a") as recipe:
        recipe.write("// changed\n")
    machine.calls()

    assert machine.assets.missing(DEFAULT_VERSION) == (), "what is there can be used meanwhile"
    machine.build()
    assert len(machine.calls()) == 2
    assert machine.assets.installed_records(DEFAULT_VERSION)["etcd"].recipe != before


def test_a_failed_build_shows_the_last_lines_and_leaves_what_was_there(
    machine: BuildMachine,
) -> None:
    machine.build()
    good = machine.assets.program(DEFAULT_VERSION, "etcd").read_bytes()
    (machine.folder / "recipe" / "main.go").write_text("package mian\n")
    machine.go(then="echo './main.go:1:9: undefined: mian'; exit 1")

    with pytest.raises(Unavailable) as failed:
        machine.build()

    assert "still works, but its recipe has changed" in str(failed.value)
    assert "`go build` ended with 1:\n  ./main.go:1:9: undefined: mian" in str(failed.value)
    assert "example.com/a" not in str(failed.value), "packages are no news"
    assert machine.assets.program(DEFAULT_VERSION, "etcd").read_bytes() == good
    assert machine.left() == []


def test_a_first_build_that_fails_is_missing_everything(machine: BuildMachine) -> None:
    machine.go(then="exit 1")
    with pytest.raises(Unavailable, match="lacks etcd, etcdutl"):
        machine.build()
    assert machine.assets.versions() == ()


def test_a_build_of_the_wrong_version_does_not_get_in(machine: BuildMachine) -> None:
    machine.build()
    good = machine.assets.program(DEFAULT_VERSION, "etcd").read_bytes()
    (machine.folder / "recipe" / "main.go").write_text("package main // unstamped\n")
    machine.go(kubernetes="0.0.0-master")
    with pytest.raises(Refused, match=r"is 0\.0\.0-master, and .* is wanted"):
        machine.build()
    assert machine.assets.program(DEFAULT_VERSION, "etcd").read_bytes() == good
    assert machine.assets.missing(DEFAULT_VERSION) == ()


@pytest.mark.parametrize(
    "version, enough",
    [
        ("go1.26.0", True),
        ("go1.27rc1", True),
        ("devel go1.28-abcdef", True),
        ("go2.0", True),
        ("go1.25.9", False),
        ("", False),
    ],
)
def test_the_compiler_must_be_new_enough(machine: BuildMachine, version: str, enough: bool) -> None:
    machine.go(version=version)
    if enough:
        machine.build()
        return
    with pytest.raises(Unavailable, match=r"Go 1\.26 is needed"):
        machine.build()
    assert machine.calls() == []


def test_only_what_is_missing_is_taken_from_the_build(machine: BuildMachine) -> None:
    put_programs(machine.folder / "bin", RELEASE, ("kubectl",))
    means = machine.means(methods=(InstallMethod.FOUND, InstallMethod.BUILD))
    install_programs(machine.assets, DEFAULT_VERSION, means, ProgressListener())
    recorded = machine.assets.installed_records(DEFAULT_VERSION)
    assert recorded.pop("kubectl").source is ProgramSource.FOUND
    assert {one.source for one in recorded.values()} == {ProgramSource.BUILT}


def test_where_downloads_are_not_to_be_had_it_is_built(machine: BuildMachine) -> None:
    nobody = "http://127.0.0.1:9"
    listener = ProgressListener()
    means = machine.means(
        methods=(InstallMethod.DOWNLOAD, InstallMethod.BUILD),
        mirrors=Mirrors(nobody, nobody, "x86_64"),
        retry_policy=DownloadRetryPolicy(small_file_seconds=5),
    )
    install_programs(machine.assets, DEFAULT_VERSION, means, listener)
    assert listener.said[:2] == [
        f"{DEFAULT_VERSION}: not downloaded: 127.0.0.1:9 cannot be reached (Connection refused)",
        f"{DEFAULT_VERSION}: building with go1.26.9; the first time takes minutes",
    ]
    assert machine.assets.missing(DEFAULT_VERSION) == ()


def test_what_a_killed_build_has_left_is_removed(machine: BuildMachine) -> None:
    installed = machine.assets.folder(DEFAULT_VERSION) / ".build-killed"
    work = machine.cache / "built" / f".{machine.cached().key}.work" / ".build-killed"
    for directory in (installed, work):
        directory.mkdir(parents=True)
        (directory / "kube").write_text("half")
    assert len(machine.left()) == 2
    machine.build()
    assert machine.left() == []


def test_an_interrupted_build_ends_the_compiler(
    machine: BuildMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.go(
        then=f"cd {machine.folder}; echo $$ > pid.new; mv pid.new pid; echo example.com/b; exec sleep 600"
    )

    def interrupt(task, done: int) -> None:
        if task.unit is ProgressUnit.PACKAGES and (machine.folder / "pid").exists():
            raise KeyboardInterrupt

    monkeypatch.setattr("tests.support.assets.RecordedTask.update", interrupt)
    with pytest.raises(KeyboardInterrupt):
        machine.build()
    assert not is_alive(int((machine.folder / "pid").read_text()))
    assert machine.left() == []


def test_the_manifest_can_be_read_by_people(machine: BuildMachine) -> None:
    machine.build()
    text = (machine.assets.folder(DEFAULT_VERSION) / "manifest.json").read_text()
    assert json.loads(text)["programs"]["etcd"]["version"] == RELEASE.etcd
    assert len(text.splitlines()) > 10
