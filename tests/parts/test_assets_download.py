"""Downloads: checked, resumed, never half in place. The mirror is a local one of the same layout."""

from __future__ import annotations

import errno
import os
import socket
import urllib.request
from collections.abc import Iterator
from http.client import HTTPMessage
from io import BytesIO
from pathlib import Path

import pytest

from boatyard.assets import DEFAULT_VERSION, PROGRAMS, Assets
from boatyard.assets.downloads import DownloadRetryPolicy, SafeRedirectHandler, download_text
from boatyard.assets.installation import (
    DOWNLOADS_DIRECTORY,
    InstallMethod,
    InstallOptions,
    install_programs,
)
from boatyard.assets.manifest import ProgramSource
from boatyard.assets.mirrors import Mirrors
from boatyard.assets.progress import ProgressUnit
from boatyard.assets.releases import release_of
from boatyard.model.errors import Refused, Unavailable
from tests.support.assets import ProgressListener, program, put_programs
from tests.support.mirror import Mirror, run_mirror

SIZE = 700_000
QUICK = DownloadRetryPolicy(
    small_file_seconds=5.0, stall_seconds=5.0, max_attempts=2, sleep=lambda seconds: None
)


@pytest.fixture
def mirror() -> Iterator[Mirror]:
    with run_mirror() as mirror:
        mirror.offer(DEFAULT_VERSION, size=SIZE)
        yield mirror


@pytest.fixture
def assets(tmp_path: Path) -> Assets:
    return Assets(tmp_path / "assets", path="")


def download(
    assets: Assets, mirror: Mirror, retry_policy: DownloadRetryPolicy = QUICK
) -> ProgressListener:
    listener = ProgressListener()
    means = InstallOptions(
        methods=(InstallMethod.DOWNLOAD,), mirrors=mirror.mirrors, retry_policy=retry_policy
    )
    install_programs(assets, DEFAULT_VERSION, means, listener)
    return listener


def test_a_whole_release_comes_with_its_checksums(assets: Assets, mirror: Mirror) -> None:
    heard = download(assets, mirror)

    assert assets.missing(DEFAULT_VERSION) == ()
    recorded = assets.installed_records(DEFAULT_VERSION)
    assert set(recorded) == set(PROGRAMS)
    assert {one.source for one in recorded.values()} == {ProgramSource.DOWNLOADED}
    kubelet = mirror.path_of(DEFAULT_VERSION, "kubelet")
    assert recorded["kubelet"].place == f"{mirror.url}/{kubelet}"
    assert recorded["kubelet"].sha256 == mirror.files[f"{kubelet}.sha256"].decode()
    assert not (assets.folder(DEFAULT_VERSION) / DOWNLOADS_DIRECTORY).exists()
    task = next(one for one in heard.tasks if one.doing == "downloading kubelet")
    assert (task.unit, task.total, task.steps[0], task.steps[-1]) == (
        ProgressUnit.BYTES,
        SIZE,
        0,
        SIZE,
    )


def test_what_is_here_is_not_asked_for_again(assets: Assets, mirror: Mirror) -> None:
    download(assets, mirror)
    mirror.served.clear()
    download(assets, mirror)
    assert mirror.served == []

    assets.program(DEFAULT_VERSION, "kubectl").unlink()
    download(assets, mirror)
    kubectl = mirror.path_of(DEFAULT_VERSION, "kubectl")
    assert [one.path for one in mirror.served] == [f"{kubectl}.sha256", kubectl]


@pytest.mark.parametrize("name", ["kube-apiserver", "etcd"])
def test_a_wrong_checksum_leaves_nothing_and_is_said(
    assets: Assets, mirror: Mirror, name: str
) -> None:
    path = mirror.path_of(DEFAULT_VERSION, name)
    good, mirror.files[path] = mirror.files[path], mirror.files[path][:-1] + b"!"

    with pytest.raises(Refused, match="wrong checksum") as refused:
        download(assets, mirror)

    assert refused.value.reason == "WrongChecksum"
    assert path in str(refused.value)
    assert name in assets.missing(DEFAULT_VERSION)
    assert not (assets.folder(DEFAULT_VERSION) / name).exists()
    assert list((assets.folder(DEFAULT_VERSION) / DOWNLOADS_DIRECTORY).glob("*.part*")) == []

    mirror.files[path] = good
    mirror.served.clear()
    download(assets, mirror)
    assert [one.range for one in mirror.requests(path)] == [""], "from the beginning"
    assert assets.missing(DEFAULT_VERSION) == ()


@pytest.mark.parametrize("tags", [True, False], ids=["with tags", "without tags"])
def test_a_cut_download_goes_on_where_it_stopped(
    assets: Assets, mirror: Mirror, tags: bool
) -> None:
    path = mirror.path_of(DEFAULT_VERSION, "kubelet")
    mirror.tags = tags
    mirror.cuts[path] = [300_000]

    heard = download(assets, mirror)

    first, second = mirror.requests(path)
    assert (first.range, first.sent) == ("", 300_000)
    assert (second.range, second.sent) == ("bytes=300000-", SIZE - 300_000)
    assert bool(second.if_range) is tags
    assert assets.missing(DEFAULT_VERSION) == ()
    assert [one.steps[0] for one in heard.tasks if one.doing == "downloading kubelet"] == [
        0,
        300_000,
    ]


def test_a_later_run_goes_on_too(assets: Assets, mirror: Mirror) -> None:
    path = mirror.path_of(DEFAULT_VERSION, "kubelet")
    mirror.cuts[path] = [200_000, 0, 0]
    with pytest.raises(Unavailable, match="what has come is kept"):
        download(assets, mirror)
    assert not (assets.folder(DEFAULT_VERSION) / "kubelet").exists()

    mirror.served.clear()
    download(assets, mirror)
    (only,) = mirror.requests(path)
    assert (only.range, only.sent) == ("bytes=200000-", SIZE - 200_000)
    assert assets.missing(DEFAULT_VERSION) == ()


def test_a_complete_part_is_not_asked_for_again(assets: Assets, mirror: Mirror) -> None:
    path = mirror.path_of(DEFAULT_VERSION, "kubelet")
    mirror.cuts[path] = [200_000, 0, 0]
    with pytest.raises(Unavailable):
        download(assets, mirror)
    # As if the process had died between the last byte and the renaming.
    (assets.folder(DEFAULT_VERSION) / DOWNLOADS_DIRECTORY / "kubelet.part").write_bytes(
        mirror.files[path]
    )

    mirror.served.clear()
    download(assets, mirror)
    assert mirror.requests(path) == []
    assert assets.missing(DEFAULT_VERSION) == ()


def test_a_server_without_ranges_gives_it_all_again(assets: Assets, mirror: Mirror) -> None:
    path = mirror.path_of(DEFAULT_VERSION, "kubelet")
    mirror.ranges = False
    mirror.cuts[path] = [300_000]

    download(assets, mirror)

    assert [one.sent for one in mirror.requests(path)] == [300_000, SIZE]
    assert assets.program(DEFAULT_VERSION, "kubelet").read_bytes() == mirror.files[path]


@pytest.mark.parametrize("tags", [True, False], ids=["with tags", "without tags"])
def test_a_file_that_changed_meanwhile_is_begun_anew(
    assets: Assets, mirror: Mirror, tags: bool
) -> None:
    path = mirror.path_of(DEFAULT_VERSION, "kubelet")
    mirror.tags = tags
    mirror.cuts[path] = [300_000, 0, 0]
    with pytest.raises(Unavailable):
        download(assets, mirror)
    mirror.put(path, program("kubelet", DEFAULT_VERSION, size=SIZE + 5))

    download(assets, mirror)
    assert assets.program(DEFAULT_VERSION, "kubelet").stat().st_size == SIZE + 5


def test_half_of_another_file_of_the_same_size_is_not_completed(
    assets: Assets, mirror: Mirror
) -> None:
    """Its checksum tells them apart, also where the server has no tags."""
    path = mirror.path_of(DEFAULT_VERSION, "kubelet")
    mirror.tags = False
    mirror.cuts[path] = [300_000, 0, 0]
    with pytest.raises(Unavailable):
        download(assets, mirror)
    before = mirror.files[path]
    mirror.put(path, before[:200_000] + before[200_000:200_001].swapcase() + before[200_001:])
    if mirror.files[path] == before:  # no letter there
        mirror.put(path, before[:200_000] + b"x" + before[200_001:])

    mirror.served.clear()
    download(assets, mirror)

    assert mirror.requests(path)[0].range == ""
    assert assets.program(DEFAULT_VERSION, "kubelet").read_bytes() == mirror.files[path] != before


def test_a_part_longer_than_the_file_is_begun_anew(assets: Assets, mirror: Mirror) -> None:
    path = mirror.path_of(DEFAULT_VERSION, "kubelet")
    mirror.cuts[path] = [300_000, 0, 0]
    with pytest.raises(Unavailable):
        download(assets, mirror)
    with (assets.folder(DEFAULT_VERSION) / DOWNLOADS_DIRECTORY / "kubelet.part").open("ab") as part:
        part.write(bytes(SIZE))

    download(assets, mirror)
    assert assets.program(DEFAULT_VERSION, "kubelet").read_bytes() == mirror.files[path]


def test_a_redirect_is_followed_with_the_rest_that_is_asked_for(
    assets: Assets, mirror: Mirror
) -> None:
    path = mirror.path_of(DEFAULT_VERSION, "kubelet")
    mirror.files["elsewhere"] = mirror.files.pop(path)
    mirror.moved[path] = f"{mirror.url}/elsewhere"
    mirror.cuts["elsewhere"] = [300_000]

    download(assets, mirror)

    assert [one.range for one in mirror.requests("elsewhere")] == ["", "bytes=300000-"]
    assert assets.missing(DEFAULT_VERSION) == ()


def test_a_redirect_from_https_to_a_plain_address_is_refused() -> None:
    asked = urllib.request.Request("https://dl.example.com/kubelet")
    follow = SafeRedirectHandler().redirect_request
    safe = follow(asked, BytesIO(), 302, "", HTTPMessage(), "https://cdn.example.com/kubelet")
    assert safe is not None
    with pytest.raises(Refused, match="not safe"):
        follow(asked, BytesIO(), 302, "", HTTPMessage(), "http://cdn.example.com/kubelet")


@pytest.mark.parametrize("gone", ["kubelet", "kubelet.sha256"])
def test_what_the_mirror_does_not_have_is_named(assets: Assets, mirror: Mirror, gone: str) -> None:
    del mirror.files[mirror.path_of(DEFAULT_VERSION, gone)]
    with pytest.raises(Unavailable, match=f"answers 404 for {mirror.url}/.*/{gone}$"):
        download(assets, mirror)


def test_a_busy_mirror_is_asked_again(assets: Assets, mirror: Mirror) -> None:
    path = mirror.path_of(DEFAULT_VERSION, "kubelet")
    mirror.statuses[path] = [503]
    download(assets, mirror)
    assert len(mirror.requests(path)) == 2


@pytest.mark.parametrize("text", ["", "<html>", "0" * 63])
def test_a_checksum_that_is_none_is_not_believed(assets: Assets, mirror: Mirror, text: str) -> None:
    mirror.files[f"{mirror.path_of(DEFAULT_VERSION, 'kubelet')}.sha256"] = text.encode()
    with pytest.raises(Unavailable, match="does not hold a checksum"):
        download(assets, mirror)


def test_a_program_of_another_version_does_not_get_in(assets: Assets, mirror: Mirror) -> None:
    put_programs(assets.folder(DEFAULT_VERSION), release_of(DEFAULT_VERSION), ("kubelet",))
    before = (assets.folder(DEFAULT_VERSION) / "kubelet").read_bytes()
    mirror.put(mirror.path_of(DEFAULT_VERSION, "kubectl"), program("kubectl", "1.30.2"))
    with pytest.raises(Refused, match=r"kubectl from .* is 1\.30\.2"):
        download(assets, mirror)
    assert not (assets.folder(DEFAULT_VERSION) / "kubectl").exists()
    assert (assets.folder(DEFAULT_VERSION) / "kubelet").read_bytes() == before


def test_a_mirror_that_refuses_is_noticed_before_anything_large(assets: Assets) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens
        nobody = f"http://127.0.0.1:{taken.getsockname()[1]}"
        means = InstallOptions(
            methods=(InstallMethod.DOWNLOAD,), mirrors=Mirrors(nobody, nobody, "x86_64")
        )
        with pytest.raises(Unavailable, match="cannot be reached"):
            install_programs(assets, DEFAULT_VERSION, means, ProgressListener())


def test_a_mirror_that_says_nothing_is_given_up_in_time() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/x"
        with pytest.raises(Unavailable, match=r"does not answer|cannot be reached"):
            download_text(url, DownloadRetryPolicy(small_file_seconds=0.2))


@pytest.mark.parametrize("url", ["file:///etc/hostname", "ftp://example.com", "dl.example.com"])
def test_a_mirror_is_http(url: str) -> None:
    with pytest.raises(Refused, match="begins with https"):
        download_text(url, QUICK)


def test_a_machine_without_releases_is_told(assets: Assets) -> None:
    means = InstallOptions(methods=(InstallMethod.DOWNLOAD,), mirrors=Mirrors(machine="riscv64"))
    with pytest.raises(Unavailable, match="no releases for riscv64"):
        install_programs(assets, DEFAULT_VERSION, means, ProgressListener())


def test_a_full_disk_is_said_and_what_was_there_stays(
    assets: Assets, mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    download(assets, mirror)
    assets.program(DEFAULT_VERSION, "kubectl").unlink()

    def full(fd: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(Refused, match=r"no room in .*--dir names another"):
        download(assets, mirror)
    assert assets.missing(DEFAULT_VERSION) == ("kubectl",)
