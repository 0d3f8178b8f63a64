"""Builds are kept outside of clones: nothing is built twice, and what is damaged is built again. `go` is a stand-in."""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from boatyard.app.main import main
from boatyard.assets import DEFAULT_VERSION, Assets
from boatyard.assets.cache import MANIFEST_FILE, SYSTEM_CACHE, cache_directory, prune_builds
from boatyard.assets.downloads import DownloadRetryPolicy
from boatyard.assets.go_build import BINARY_NAME
from boatyard.assets.installation import InstallMethod, install_programs
from boatyard.assets.mirrors import Mirrors
from boatyard.assets.verification import verify_programs
from boatyard.model.errors import Refused, Unavailable
from tests.support.assets import ProgressListener, put
from tests.support.build_machine import BuildMachine

TWO_CALLS = 2  # `go list` and `go build`


@pytest.fixture
def machine(tmp_path: Path) -> BuildMachine:
    return BuildMachine(tmp_path)


def is_good(assets: Assets) -> bool:
    return not any(finding.problem for finding in verify_programs(assets, DEFAULT_VERSION))


@pytest.mark.parametrize(
    "environ, root, expected",
    [
        pytest.param({"BOATYARD_CACHE": "/b", "HOME": "/h"}, True, "/b", id="named, root"),
        pytest.param({"BOATYARD_CACHE": "/b", "HOME": "/h"}, False, "/b", id="named"),
        pytest.param({"XDG_CACHE_HOME": "/c", "HOME": "/h"}, True, str(SYSTEM_CACHE), id="root"),
        pytest.param({"XDG_CACHE_HOME": "/c", "HOME": "/h"}, False, "/c/boatyard", id="user, XDG"),
        pytest.param({"HOME": "/h"}, False, "/h/.cache/boatyard", id="user"),
    ],
)
def test_where_the_cache_is(environ: dict[str, str], root: bool, expected: str) -> None:
    assert cache_directory(environ, root=root) == Path(expected)


def test_a_second_clone_builds_nothing(machine: BuildMachine) -> None:
    machine.build()
    machine.calls()
    (machine.folder / "bin" / "go").unlink()  # nor does it need a compiler
    clone = machine.directory("clone")

    listener = machine.build(clone)

    assert machine.calls() == []
    assert is_good(clone)
    assert any(str(machine.cached().directory) in line for line in listener.said)
    assert clone.installed_records(DEFAULT_VERSION)["etcd"].recipe == machine.cached().recipe
    assert machine.left() == []


def test_a_build_in_the_cache_comes_before_downloads_and_after_programs_that_are_here(
    machine: BuildMachine,
) -> None:
    machine.build()
    nobody = "http://127.0.0.1:9"
    means = machine.means(
        methods=tuple(InstallMethod),
        mirrors=Mirrors(nobody, nobody, "x86_64"),
        retry_policy=DownloadRetryPolicy(small_file_seconds=5),
    )
    listener = ProgressListener()
    install_programs(machine.directory("clone"), DEFAULT_VERSION, means, listener)
    assert "cannot be reached" not in listener.text()
    found_only = machine.means(methods=(InstallMethod.FOUND,))
    with pytest.raises(Unavailable, match="lacks etcd"):
        install_programs(
            machine.directory("other"), DEFAULT_VERSION, found_only, ProgressListener()
        )


def test_an_install_directory_that_was_removed_is_made_again(machine: BuildMachine) -> None:
    machine.build()
    machine.calls()
    for path in machine.assets.folder(DEFAULT_VERSION).iterdir():
        path.unlink()
    machine.assets.folder(DEFAULT_VERSION).rmdir()
    machine.build()
    assert machine.calls() == []
    assert is_good(machine.assets)


def test_two_recipes_lie_side_by_side(machine: BuildMachine) -> None:
    machine.build()
    first = machine.cached()
    machine.change_recipe()
    machine.build()
    second = machine.cached()
    assert first.directory != second.directory
    machine.calls()

    machine.change_recipe("package main\n")
    machine.build()
    assert machine.calls() == [], "the first is still there"
    assert machine.assets.installed_records(DEFAULT_VERSION)["etcd"].recipe == first.recipe
    machine.change_recipe()
    machine.build()
    assert machine.calls() == [], "and so is the second"
    assert machine.assets.installed_records(DEFAULT_VERSION)["etcd"].recipe == second.recipe


def flip_a_byte(build: Path) -> None:
    content = bytearray((build / BINARY_NAME).read_bytes())
    content[-2] ^= 1
    (build / BINARY_NAME).write_bytes(content)


def truncate(build: Path) -> None:
    os.truncate(build / BINARY_NAME, 10)


def remove_the_file(build: Path) -> None:
    (build / BINARY_NAME).unlink()


def remove_the_manifest(build: Path) -> None:
    (build / MANIFEST_FILE).unlink()


def garble_the_manifest(build: Path) -> None:
    (build / MANIFEST_FILE).write_bytes(b'{"recipe": "\xff')


def empty_the_manifest(build: Path) -> None:
    (build / MANIFEST_FILE).write_text('{"recipe": "", "compiler": "", "files": {}}')


def name_no_file(build: Path) -> None:
    text = (build / MANIFEST_FILE).read_text()
    (build / MANIFEST_FILE).write_text(text[: text.index('"files"')] + '"files": {}}')


def make_it_no_program(build: Path) -> None:
    (build / BINARY_NAME).chmod(0o644)


DAMAGES = [
    pytest.param(flip_a_byte, "kube has another sha256", id="a flipped byte"),
    pytest.param(truncate, "kube has 10 bytes instead of", id="a truncated file"),
    pytest.param(remove_the_file, "kube is missing", id="a missing file"),
    pytest.param(remove_the_manifest, "manifest.json: No such file", id="a missing manifest"),
    pytest.param(garble_the_manifest, "manifest.json cannot be read", id="an unreadable manifest"),
    pytest.param(empty_the_manifest, "manifest.json is of another recipe", id="another manifest"),
    pytest.param(name_no_file, "kube is not in its manifest", id="a manifest without files"),
    pytest.param(make_it_no_program, "kube cannot be run", id="a lost permission"),
]


@pytest.mark.parametrize("damage, words", DAMAGES)
def test_what_is_damaged_is_built_again(
    machine: BuildMachine, damage: Callable[[Path], None], words: str
) -> None:
    machine.build()
    machine.calls()
    build = machine.cached().directory
    damage(build)

    clone = machine.directory("clone")
    listener = machine.build(clone)

    assert len(machine.calls()) == TWO_CALLS
    (line,) = [line for line in listener.said if "is damaged" in line]
    assert line.startswith(f"{DEFAULT_VERSION}: {build} is damaged and built again: {words}")
    assert is_good(clone)
    machine.build(machine.directory("third"))
    assert machine.calls() == [], "it is good now"
    assert machine.left() == []


def test_programs_of_another_machine_are_built_again(machine: BuildMachine) -> None:
    machine.build()
    build = machine.cached()
    with build.hold_build_lock(on_wait=None) as work:
        build.store({BINARY_NAME: put(work / BINARY_NAME, b"\x7fELF")}, "go1.26.9")
    listener = machine.build(machine.directory("clone"))
    assert "damaged and built again: etcd does not say" in listener.text()


def test_a_damaged_build_that_cannot_be_built_again_is_not_taken(machine: BuildMachine) -> None:
    machine.build()
    flip_a_byte(machine.cached().directory)
    machine.go(then="exit 1")
    clone = machine.directory("clone")
    with pytest.raises(Unavailable, match="lacks etcd"):
        machine.build(clone)
    assert list(clone.folder(DEFAULT_VERSION).iterdir()) == []


def test_a_build_of_the_wrong_version_is_not_stored(machine: BuildMachine) -> None:
    machine.go(kubernetes="0.0.0-master")
    with pytest.raises(Refused, match=r"is 0\.0\.0-master"):
        machine.build()
    assert not machine.cached().directory.exists()


def test_programs_are_hard_links(machine: BuildMachine) -> None:
    machine.build()
    stored = machine.cached().directory / BINARY_NAME
    assert (machine.assets.folder(DEFAULT_VERSION) / BINARY_NAME).samefile(stored)


@pytest.mark.parametrize("number", [errno.EXDEV, errno.EPERM], ids=["file system", "owner"])
def test_where_there_can_be_no_link_it_is_a_copy(
    machine: BuildMachine, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(source: object, target: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("os.link", refuse)
    machine.build()
    installed = machine.assets.folder(DEFAULT_VERSION) / BINARY_NAME
    assert not installed.samefile(machine.cached().directory / BINARY_NAME)
    assert is_good(machine.assets)


def test_every_user_may_run_what_is_there_whatever_the_umask_says(machine: BuildMachine) -> None:
    umask = os.umask(0o077)
    try:
        machine.build()
    finally:
        os.umask(umask)
    program = machine.assets.program(DEFAULT_VERSION, "etcd").resolve()
    stored = machine.cached().directory / BINARY_NAME
    for file in (program, stored):
        for path in (file, *file.parents):
            if path == machine.folder:
                break
            assert path.stat().st_mode & 0o555 == 0o555, path


def test_a_complete_directory_is_not_written_to(machine: BuildMachine) -> None:
    machine.build()
    before = {path: path.lstat().st_mtime_ns for path in machine.folder.rglob("*")}
    listener = machine.build()
    assert {path: path.lstat().st_mtime_ns for path in machine.folder.rglob("*")} == before
    assert "programs ready in" in listener.text()


def test_a_cache_that_cannot_be_is_refused_with_the_remedy(machine: BuildMachine) -> None:
    machine.cache.write_text("a file")
    with pytest.raises(Refused, match=r"cannot write to .*/cache: .*BOATYARD_CACHE names another"):
        machine.build()


def test_two_clones_at_once_build_once(machine: BuildMachine) -> None:
    # The compiler goes on once somebody waits for it; not for ever, when nobody does.
    look = f"[ -e {machine.folder}/waits ] && break; sleep 0.05"
    machine.go(then=f"for n in $(seq 400); do {look}; done")

    class BlockingListener(ProgressListener):
        def show_line(self, words: str) -> None:
            super().show_line(words)
            if "another installation builds it" in words:
                (machine.folder / "waits").touch()

    listeners = [BlockingListener(), BlockingListener()]
    clones = [machine.directory("first"), machine.directory("second")]
    threads = [
        threading.Thread(
            target=install_programs, args=(clone, DEFAULT_VERSION, machine.means(), listener)
        )
        for clone, listener in zip(clones, listeners, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert len(machine.calls()) == TWO_CALLS
    assert [is_good(clone) for clone in clones] == [True, True]
    assert sorted("waiting" in listener.text() for listener in listeners) == [False, True]


def age(machine: BuildMachine, days: float) -> None:
    then = time.time() - days * 86400
    os.utime(machine.cached().directory, (then, then))


def test_pruning_removes_what_nobody_has_installed_for_long(machine: BuildMachine) -> None:
    machine.build()
    old = machine.cached()
    age(machine, 40)
    machine.change_recipe("package main // young\n")
    machine.build()
    young = machine.cached()
    machine.change_recipe("package main // needed\n")
    machine.build()
    needed = machine.cached()
    age(machine, 40)
    killed = machine.cache / "built" / ".kubernetes-1.30.0-0123456789abcdef.work"
    killed.mkdir()
    size = sum(file.stat().st_size for file in old.directory.iterdir())

    removed = list(prune_builds(machine.cache, keep={needed.key}, before=time.time() - 30 * 86400))

    assert removed == [(old.key, size)]
    builds = {path.name for path in (machine.cache / "built").iterdir() if path.is_dir()}
    assert builds == {young.key, needed.key}
    assert is_good(machine.assets)


def test_what_is_installed_again_is_young_again(machine: BuildMachine) -> None:
    machine.build()
    age(machine, 40)
    machine.build(machine.directory("clone"))
    assert list(prune_builds(machine.cache, keep=(), before=time.time() - 30 * 86400)) == []


def test_what_is_being_built_is_not_pruned(machine: BuildMachine) -> None:
    machine.build()
    with machine.cached().hold_build_lock(on_wait=None) as work:
        assert list(prune_builds(machine.cache, keep=(), before=time.time() + 60)) == []
        assert work.is_dir()
    assert machine.cached().directory.is_dir()


def test_prune_as_it_is_typed(
    machine: BuildMachine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BOATYARD_CACHE", str(machine.cache))
    machine.build()
    assert main(["assets", "prune"]) == 0
    assert capsys.readouterr().out == f"nothing to remove in {machine.cache / 'built'}\n"
    assert main(["assets", "prune", "--days", "0"]) == 0
    assert capsys.readouterr().out == f"removed {machine.cached().key}, 0 MB\n"
    machine.calls()
    machine.build(machine.directory("clone"))
    assert len(machine.calls()) == TWO_CALLS
