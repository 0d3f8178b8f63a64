"""Installing: what is on the machine is taken when it is right and left alone when not; one at a time."""

from __future__ import annotations

import fcntl
import os
import threading
from pathlib import Path

import pytest

from boatyard.assets import DEFAULT, PROGRAMS, Assets
from boatyard.assets.fetching import Patience
from boatyard.assets.installing import LOCK, Means, Way, install
from boatyard.assets.manifest import NAME, Source
from boatyard.assets.mirrors import Mirrors
from boatyard.assets.releases import release_of
from boatyard.model.errors import Refused, Unavailable
from tests.support.assets import Listener, program, put, put_programs

RELEASE = release_of(DEFAULT)
FOUND = Means(ways=(Way.FOUND,))


def test_programs_on_path_are_linked(tmp_path: Path) -> None:
    put_programs(tmp_path / "bin", RELEASE)
    assets = Assets(tmp_path / "assets", path=f"{tmp_path / 'none'}:{tmp_path / 'bin'}")

    install(assets, DEFAULT, FOUND, Listener())

    assert assets.missing(DEFAULT) == ()
    linked = assets.program(DEFAULT, "kubelet")
    assert os.readlink(linked) == str(tmp_path / "bin" / "kubelet")
    record = assets.recorded(DEFAULT)["kubelet"]
    assert (record.source, record.place) == (Source.FOUND, str(tmp_path / "bin" / "kubelet"))


def test_a_linked_program_that_is_upgraded_does_not_count_any_more(tmp_path: Path) -> None:
    put_programs(tmp_path / "bin", RELEASE)
    assets = Assets(tmp_path / "assets", path=str(tmp_path / "bin"))
    install(assets, DEFAULT, FOUND, Listener())

    put(tmp_path / "bin" / "kubelet", program("kubelet", "1.37.0"))

    assert assets.missing(DEFAULT) == ("kubelet",)
    listener = Listener()
    with pytest.raises(Unavailable, match="lacks kubelet"):
        install(assets, DEFAULT, FOUND, listener)
    assert "kubelet is no longer what was installed" in listener.text()


@pytest.mark.parametrize("below", ["", DEFAULT], ids=["flat", "by version"])
def test_the_given_directory_comes_before_path(tmp_path: Path, below: str) -> None:
    put_programs(tmp_path / "given" / below, RELEASE)
    put_programs(tmp_path / "bin", RELEASE)
    assets = Assets(tmp_path / "assets", path=str(tmp_path / "bin"))

    install(assets, DEFAULT, Means(ways=(Way.FOUND,), folder=tmp_path / "given"), Listener())

    places = {record.place for record in assets.recorded(DEFAULT).values()}
    assert places == {str(tmp_path / "given" / below / name) for name in PROGRAMS}


@pytest.mark.parametrize(
    "content, said",
    [
        pytest.param(program("kubectl", "1.30.2"), "is 1.30.2", id="older"),
        pytest.param(program("kubectl", f"{DEFAULT}+k3s1"), f"is {DEFAULT}+k3s1", id="a variant"),
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
    listener = Listener()

    with pytest.raises(Unavailable, match="lacks kubectl"):
        install(assets, DEFAULT, FOUND, listener)

    assert f"{DEFAULT}: {wrong} {said}: left alone" in listener.said
    assert wrong.read_bytes() == content
    assert assets.missing(DEFAULT) == ("kubectl",)


def test_a_right_one_behind_a_wrong_one_is_taken(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    put(tmp_path / "old" / "kubectl", program("kubectl", "1.30.2"))
    put_programs(tmp_path / "bin", RELEASE)
    assets = Assets(tmp_path / "assets", path=f"{tmp_path / 'old'}:{tmp_path / 'bin'}")
    install(assets, DEFAULT, FOUND, Listener())
    assert assets.recorded(DEFAULT)["kubectl"].place == str(tmp_path / "bin" / "kubectl")


def test_the_directory_itself_on_path_is_not_linked_to_itself(tmp_path: Path) -> None:
    assets = Assets(tmp_path / "assets", path=str(tmp_path / "assets" / DEFAULT))
    put_programs(assets.folder(DEFAULT), RELEASE)
    install(assets, DEFAULT, FOUND, Listener())
    (assets.folder(DEFAULT) / NAME).unlink()
    (assets.folder(DEFAULT) / "kubelet").unlink()
    with pytest.raises(Unavailable, match="lacks kubelet"):
        install(assets, DEFAULT, FOUND, Listener())
    assert not (assets.folder(DEFAULT) / "kubelet").is_symlink()


def test_what_lies_there_unrecorded_is_asked_once_and_kept(tmp_path: Path) -> None:
    assets = Assets(tmp_path / "assets", path="")
    put_programs(assets.folder(DEFAULT), RELEASE)
    assert assets.versions() == ()

    install(assets, DEFAULT, FOUND, Listener())
    assert assets.versions() == (DEFAULT,)

    before = (assets.folder(DEFAULT) / NAME).stat().st_mtime_ns
    install(assets, DEFAULT, FOUND, Listener())
    assert (assets.folder(DEFAULT) / NAME).stat().st_mtime_ns == before


def test_without_any_way_everything_that_was_tried_is_said(tmp_path: Path) -> None:
    nobody = "http://127.0.0.1:9"  # discard: nobody listens
    means = Means(
        mirrors=Mirrors(nobody, nobody, "x86_64"),
        patience=Patience(reach=5),
        cache=tmp_path / "cache",
    )
    listener = Listener()
    with pytest.raises(Unavailable) as failed:
        install(Assets(tmp_path / "assets", path=""), DEFAULT, means, listener)
    assert "lacks etcd, etcdutl, kube-apiserver" in str(failed.value)
    assert "127.0.0.1:9 cannot be reached" in str(failed.value)
    assert "Go 1.26 or later is not on PATH" in str(failed.value)
    assert listener.said == [
        f"{DEFAULT}: not downloaded: 127.0.0.1:9 cannot be reached (Connection refused)"
    ]


def test_a_second_installation_waits_and_says_so(tmp_path: Path) -> None:
    put_programs(tmp_path / "bin", RELEASE)
    assets = Assets(tmp_path / "assets", path=str(tmp_path / "bin"))
    assets.directory.mkdir()
    waits = threading.Event()

    class Waiting(Listener):
        def say(self, words: str) -> None:
            super().say(words)
            if "another installation is at work" in words:
                waits.set()

    second = threading.Thread(target=install, args=(assets, DEFAULT, FOUND, Waiting()))
    with (assets.directory / LOCK).open("a") as first:
        fcntl.flock(first, fcntl.LOCK_EX)
        second.start()
        assert waits.wait(timeout=30)
        assert not assets.folder(DEFAULT).exists(), "nothing is written before its turn"
    second.join(timeout=60)
    assert not second.is_alive()
    assert assets.missing(DEFAULT) == ()


def test_two_at_once_end_with_one_good_directory(tmp_path: Path) -> None:
    put_programs(tmp_path / "bin", RELEASE)
    assets = Assets(tmp_path / "assets", path=str(tmp_path / "bin"))
    both = [
        threading.Thread(target=install, args=(assets, DEFAULT, FOUND, Listener()))
        for _ in range(2)
    ]
    for one in both:
        one.start()
    for one in both:
        one.join(timeout=60)
    assert assets.missing(DEFAULT) == ()


def test_a_directory_that_cannot_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Refused, match=r"cannot write to .*--dir names another"):
        install(Assets(tmp_path / "file" / "assets", path=""), DEFAULT, FOUND, Listener())


def test_a_directory_of_others_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # As root every directory can be written to: the answer of a read-only one is planted.
    def read_only(self: Path, *args: object, **kwargs: object) -> None:
        raise OSError(30, "Read-only file system", str(self))

    monkeypatch.setattr(Path, "mkdir", read_only)
    with pytest.raises(Refused, match="Read-only file system"):
        install(Assets(tmp_path / "assets", path=""), DEFAULT, FOUND, Listener())
