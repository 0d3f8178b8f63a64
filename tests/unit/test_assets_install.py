"""Installing: what is on the machine is taken when it is right and left alone when not; one at a time."""

from __future__ import annotations

import fcntl
import os
import threading
from pathlib import Path

import pytest

from boatyard.assets import DEFAULT_VERSION, PROGRAMS, Assets
from boatyard.assets.downloads import DownloadRetryPolicy
from boatyard.assets.installation import LOCK_FILE, InstallMethod, InstallOptions, install_programs
from boatyard.assets.manifest import MANIFEST_FILE, ProgramSource
from boatyard.assets.mirrors import Mirrors
from boatyard.assets.releases import release_of
from boatyard.model.errors import Refused, Unavailable
from tests.support.assets import ProgressListener, program, put, put_programs

RELEASE = release_of(DEFAULT_VERSION)
FOUND = InstallOptions(methods=(InstallMethod.FOUND,))


def test_programs_on_path_are_linked(tmp_path: Path) -> None:
    put_programs(tmp_path / "bin", RELEASE)
    assets = Assets(tmp_path / "assets", path=f"{tmp_path / 'none'}:{tmp_path / 'bin'}")

    install_programs(assets, DEFAULT_VERSION, FOUND, ProgressListener())

    assert assets.missing(DEFAULT_VERSION) == ()
    linked = assets.program(DEFAULT_VERSION, "kubelet")
    assert os.readlink(linked) == str(tmp_path / "bin" / "kubelet")
    record = assets.installed_records(DEFAULT_VERSION)["kubelet"]
    assert (record.source, record.place) == (ProgramSource.FOUND, str(tmp_path / "bin" / "kubelet"))


def test_a_linked_program_that_is_upgraded_does_not_count_any_more(tmp_path: Path) -> None:
    put_programs(tmp_path / "bin", RELEASE)
    assets = Assets(tmp_path / "assets", path=str(tmp_path / "bin"))
    install_programs(assets, DEFAULT_VERSION, FOUND, ProgressListener())

    put(tmp_path / "bin" / "kubelet", program("kubelet", "1.37.0"))

    assert assets.missing(DEFAULT_VERSION) == ("kubelet",)
    listener = ProgressListener()
    with pytest.raises(Unavailable, match="lacks kubelet"):
        install_programs(assets, DEFAULT_VERSION, FOUND, listener)
    assert "kubelet is no longer what was installed" in listener.text()


@pytest.mark.parametrize("below", ["", DEFAULT_VERSION], ids=["flat", "by version"])
def test_the_given_directory_comes_before_path(tmp_path: Path, below: str) -> None:
    put_programs(tmp_path / "given" / below, RELEASE)
    put_programs(tmp_path / "bin", RELEASE)
    assets = Assets(tmp_path / "assets", path=str(tmp_path / "bin"))

    install_programs(
        assets,
        DEFAULT_VERSION,
        InstallOptions(methods=(InstallMethod.FOUND,), search_directory=tmp_path / "given"),
        ProgressListener(),
    )

    places = {record.place for record in assets.installed_records(DEFAULT_VERSION).values()}
    assert places == {str(tmp_path / "given" / below / name) for name in PROGRAMS}


@pytest.mark.parametrize(
    "content, said",
    [
        pytest.param(program("kubectl", "1.30.2"), "is 1.30.2", id="older"),
        pytest.param(
            program("kubectl", f"{DEFAULT_VERSION}+k3s1"),
            f"is {DEFAULT_VERSION}+k3s1",
            id="a variant",
        ),
        pytest.param(b"#!/bin/sh\nexit 3\n", "says no version", id="broken"),
        pytest.param(b"\x7fELF", "says no version", id="for another machine"),
    ],
)
def test_a_program_of_another_version_is_named_and_left_alone(
    tmp_path: Path, content: bytes, said: str
) -> None:
    put_programs(tmp_path / "bin", RELEASE)
    wrong = put(tmp_path / "bin" / "kubectl", content)
    assets = Assets(tmp_path / "assets", path=str(tmp_path / "bin"))
    listener = ProgressListener()

    with pytest.raises(Unavailable, match="lacks kubectl"):
        install_programs(assets, DEFAULT_VERSION, FOUND, listener)

    assert f"{DEFAULT_VERSION}: {wrong} {said}: left alone" in listener.said
    assert wrong.read_bytes() == content
    assert assets.missing(DEFAULT_VERSION) == ("kubectl",)


def test_a_right_one_behind_a_wrong_one_is_taken(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    put(tmp_path / "old" / "kubectl", program("kubectl", "1.30.2"))
    put_programs(tmp_path / "bin", RELEASE)
    assets = Assets(tmp_path / "assets", path=f"{tmp_path / 'old'}:{tmp_path / 'bin'}")
    install_programs(assets, DEFAULT_VERSION, FOUND, ProgressListener())
    assert assets.installed_records(DEFAULT_VERSION)["kubectl"].place == str(
        tmp_path / "bin" / "kubectl"
    )


def test_the_directory_itself_on_path_is_not_linked_to_itself(tmp_path: Path) -> None:
    assets = Assets(tmp_path / "assets", path=str(tmp_path / "assets" / DEFAULT_VERSION))
    put_programs(assets.folder(DEFAULT_VERSION), RELEASE)
    install_programs(assets, DEFAULT_VERSION, FOUND, ProgressListener())
    (assets.folder(DEFAULT_VERSION) / MANIFEST_FILE).unlink()
    (assets.folder(DEFAULT_VERSION) / "kubelet").unlink()
    with pytest.raises(Unavailable, match="lacks kubelet"):
        install_programs(assets, DEFAULT_VERSION, FOUND, ProgressListener())
    assert not (assets.folder(DEFAULT_VERSION) / "kubelet").is_symlink()


def test_what_lies_there_unrecorded_is_asked_once_and_kept(tmp_path: Path) -> None:
    assets = Assets(tmp_path / "assets", path="")
    put_programs(assets.folder(DEFAULT_VERSION), RELEASE)
    assert assets.versions() == ()

    install_programs(assets, DEFAULT_VERSION, FOUND, ProgressListener())
    assert assets.versions() == (DEFAULT_VERSION,)

    before = (assets.folder(DEFAULT_VERSION) / MANIFEST_FILE).stat().st_mtime_ns
    install_programs(assets, DEFAULT_VERSION, FOUND, ProgressListener())
    assert (assets.folder(DEFAULT_VERSION) / MANIFEST_FILE).stat().st_mtime_ns == before


def test_without_any_way_everything_that_was_tried_is_said(tmp_path: Path) -> None:
    nobody = "http://127.0.0.1:9"  # discard: nobody listens
    means = InstallOptions(
        mirrors=Mirrors(nobody, nobody, "x86_64"),
        retry_policy=DownloadRetryPolicy(small_file_seconds=5),
        cache=tmp_path / "cache",
    )
    listener = ProgressListener()
    with pytest.raises(Unavailable) as failed:
        install_programs(Assets(tmp_path / "assets", path=""), DEFAULT_VERSION, means, listener)
    assert "lacks etcd, etcdutl, kube-apiserver" in str(failed.value)
    assert "127.0.0.1:9 cannot be reached" in str(failed.value)
    assert "Go 1.26 or later is not on PATH" in str(failed.value)
    assert listener.said == [
        f"{DEFAULT_VERSION}: not downloaded: 127.0.0.1:9 cannot be reached (Connection refused)"
    ]


def test_a_second_installation_waits_and_says_so(tmp_path: Path) -> None:
    put_programs(tmp_path / "bin", RELEASE)
    assets = Assets(tmp_path / "assets", path=str(tmp_path / "bin"))
    assets.directory.mkdir()
    waits = threading.Event()

    class PausingListener(ProgressListener):
        def show_line(self, words: str) -> None:
            super().show_line(words)
            if "another installation is at work" in words:
                waits.set()

    second = threading.Thread(
        target=install_programs, args=(assets, DEFAULT_VERSION, FOUND, PausingListener())
    )
    with (assets.directory / LOCK_FILE).open("a") as first:
        fcntl.flock(first, fcntl.LOCK_EX)
        second.start()
        assert waits.wait(timeout=30)
        assert not assets.folder(DEFAULT_VERSION).exists(), "nothing is written before its turn"
    second.join(timeout=60)
    assert not second.is_alive()
    assert assets.missing(DEFAULT_VERSION) == ()


def test_two_at_once_end_with_one_good_directory(tmp_path: Path) -> None:
    put_programs(tmp_path / "bin", RELEASE)
    assets = Assets(tmp_path / "assets", path=str(tmp_path / "bin"))
    both = [
        threading.Thread(
            target=install_programs, args=(assets, DEFAULT_VERSION, FOUND, ProgressListener())
        )
        for _ in range(2)
    ]
    for one in both:
        one.start()
    for one in both:
        one.join(timeout=60)
    assert assets.missing(DEFAULT_VERSION) == ()


def test_a_directory_that_cannot_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Refused, match=r"cannot write to .*--dir names another"):
        install_programs(
            Assets(tmp_path / "file" / "assets", path=""),
            DEFAULT_VERSION,
            FOUND,
            ProgressListener(),
        )


def test_a_directory_of_others_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # As root every directory can be written to: the answer of a read-only one is planted.
    def read_only(self: Path, *args: object, **kwargs: object) -> None:
        raise OSError(30, "Read-only file system", str(self))

    monkeypatch.setattr(Path, "mkdir", read_only)
    with pytest.raises(Refused, match="Read-only file system"):
        install_programs(
            Assets(tmp_path / "assets", path=""), DEFAULT_VERSION, FOUND, ProgressListener()
        )
