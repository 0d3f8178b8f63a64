"""Building: only when nothing else helps and something has changed; a bad build costs nothing. `go` is a stand-in."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from boatyard.assets import DEFAULT, PROGRAMS
from boatyard.assets.fetching import Patience
from boatyard.assets.installing import Way, install
from boatyard.assets.manifest import Source
from boatyard.assets.mirrors import Mirrors
from boatyard.assets.releases import release_of
from boatyard.assets.telling import Unit
from boatyard.model.errors import Refused, Unavailable
from tests.support.assets import Listener, put_programs
from tests.support.build_machine import BuildMachine
from tests.support.processes import is_alive

RELEASE = release_of(DEFAULT)


@pytest.fixture
def yard(tmp_path: Path) -> BuildMachine:
    return BuildMachine(tmp_path)


def test_one_file_is_every_program(yard: BuildMachine) -> None:
    heard = yard.build()

    recorded = yard.assets.recorded(DEFAULT)
    assert set(recorded) == set(PROGRAMS)
    for name, record in recorded.items():
        assert os.readlink(yard.assets.program(DEFAULT, name)) == "kube"
        assert (record.source, record.place) == (Source.BUILT, "go1.26.9")
    assert len({record.sha256 for record in recorded.values()}) == 1
    assert [(one.unit, one.total, one.steps) for one in heard.tasks] == [
        (Unit.MODULES, None, [0, 1]),
        (Unit.PACKAGES, 3, [0, 1, 2]),
    ]
    assert yard.left() == []


def test_how_the_compiler_is_called(yard: BuildMachine, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GOOS", "GOARCH", "GO111MODULE", "GOWORK"):
        monkeypatch.setenv(name, "planted")
    monkeypatch.setenv("GOPROXY", "https://modules.example.com")
    yard.build()

    listed, built = yard.calls()
    assert listed == "list -mod=readonly -deps ."
    assert built.startswith("build -v -mod=readonly -buildvcs=false -trimpath -ldflags=-s -w -X ")
    assert built.endswith(" -o kube .")
    for package in ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version"):
        assert f"-X {package}.gitVersion=v{DEFAULT} " in built
        assert f"-X {package}.gitMinor={RELEASE.minor.partition('.')[2]} " in built
        assert f"-X {package}.buildDate={RELEASE.published}" in built
    environ = (yard.folder / "environment").read_text().splitlines()
    assert {"CGO_ENABLED=0", "GOTOOLCHAIN=local", "GOWORK=off"} <= set(environ)
    assert "GOPROXY=https://modules.example.com" in environ
    assert not any(line.endswith("=planted") for line in environ)


def test_the_same_recipe_is_not_built_twice(yard: BuildMachine) -> None:
    yard.build()
    yard.calls()
    yard.build()
    assert yard.calls() == []


@pytest.mark.parametrize("file", ["main.go", f"{RELEASE.minor}/go.mod", f"{RELEASE.minor}/go.sum"])
def test_a_changed_recipe_is_built_anew(yard: BuildMachine, file: str) -> None:
    yard.build()
    before = yard.assets.recorded(DEFAULT)["etcd"].recipe
    with (yard.folder / "recipe" / file).open("a") as recipe:
        recipe.write("// changed\n")
    yard.calls()

    assert yard.assets.missing(DEFAULT) == (), "what is there can be used meanwhile"
    yard.build()
    assert len(yard.calls()) == 2
    assert yard.assets.recorded(DEFAULT)["etcd"].recipe != before


def test_a_failed_build_shows_the_last_lines_and_leaves_what_was_there(yard: BuildMachine) -> None:
    yard.build()
    good = yard.assets.program(DEFAULT, "etcd").read_bytes()
    (yard.folder / "recipe" / "main.go").write_text("package mian\n")
    yard.go(then="echo './main.go:1:9: undefined: mian'; exit 1")

    with pytest.raises(Unavailable) as failed:
        yard.build()

    assert "still works, but its recipe has changed" in str(failed.value)
    assert "`go build` ended with 1:\n  ./main.go:1:9: undefined: mian" in str(failed.value)
    assert "example.com/a" not in str(failed.value), "packages are no news"
    assert yard.assets.program(DEFAULT, "etcd").read_bytes() == good
    assert yard.left() == []


def test_a_first_build_that_fails_is_missing_everything(yard: BuildMachine) -> None:
    yard.go(then="exit 1")
    with pytest.raises(Unavailable, match="lacks etcd, etcdutl"):
        yard.build()
    assert yard.assets.versions() == ()


def test_a_build_of_the_wrong_version_does_not_get_in(yard: BuildMachine) -> None:
    yard.build()
    good = yard.assets.program(DEFAULT, "etcd").read_bytes()
    (yard.folder / "recipe" / "main.go").write_text("package main // unstamped\n")
    yard.go(kubernetes="0.0.0-master")
    with pytest.raises(Refused, match=r"is 0\.0\.0-master, and .* is wanted"):
        yard.build()
    assert yard.assets.program(DEFAULT, "etcd").read_bytes() == good
    assert yard.assets.missing(DEFAULT) == ()


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
def test_the_compiler_must_be_new_enough(yard: BuildMachine, version: str, enough: bool) -> None:
    yard.go(version=version)
    if enough:
        yard.build()
        return
    with pytest.raises(Unavailable, match=r"Go 1\.26 is needed"):
        yard.build()
    assert yard.calls() == []


def test_only_what_is_missing_is_taken_from_the_build(yard: BuildMachine) -> None:
    put_programs(yard.folder / "bin", RELEASE, ("kubectl",))
    means = yard.means(ways=(Way.FOUND, Way.BUILD))
    install(yard.assets, DEFAULT, means, Listener())
    recorded = yard.assets.recorded(DEFAULT)
    assert recorded.pop("kubectl").source is Source.FOUND
    assert {one.source for one in recorded.values()} == {Source.BUILT}


def test_where_downloads_are_not_to_be_had_it_is_built(yard: BuildMachine) -> None:
    nobody = "http://127.0.0.1:9"
    listener = Listener()
    means = yard.means(
        ways=(Way.DOWNLOAD, Way.BUILD),
        mirrors=Mirrors(nobody, nobody, "x86_64"),
        patience=Patience(reach=5),
    )
    install(yard.assets, DEFAULT, means, listener)
    assert listener.said[:2] == [
        f"{DEFAULT}: not downloaded: 127.0.0.1:9 cannot be reached (Connection refused)",
        f"{DEFAULT}: building with go1.26.9; the first time takes minutes",
    ]
    assert yard.assets.missing(DEFAULT) == ()


def test_what_a_killed_build_has_left_is_removed(yard: BuildMachine) -> None:
    installed = yard.assets.folder(DEFAULT) / ".build-killed"
    work = yard.cache / "built" / f".{yard.cached().key}.work" / ".build-killed"
    for directory in (installed, work):
        directory.mkdir(parents=True)
        (directory / "kube").write_text("half")
    assert len(yard.left()) == 2
    yard.build()
    assert yard.left() == []


def test_an_interrupted_build_ends_the_compiler(
    yard: BuildMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    yard.go(
        then=f"cd {yard.folder}; echo $$ > pid.new; mv pid.new pid; echo example.com/b; exec sleep 600"
    )

    def interrupt(task, done: int) -> None:
        if task.unit is Unit.PACKAGES and (yard.folder / "pid").exists():
            raise KeyboardInterrupt

    monkeypatch.setattr("tests.support.assets.Heard.at", interrupt)
    with pytest.raises(KeyboardInterrupt):
        yard.build()
    assert not is_alive(int((yard.folder / "pid").read_text()))
    assert yard.left() == []


def test_the_manifest_can_be_read_by_people(yard: BuildMachine) -> None:
    yard.build()
    text = (yard.assets.folder(DEFAULT) / "manifest.json").read_text()
    assert json.loads(text)["programs"]["etcd"]["version"] == RELEASE.etcd
    assert len(text.splitlines()) > 10
