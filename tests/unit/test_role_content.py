"""What a role's content is: its files and nothing else; what leads elsewhere is refused; folders are mended."""

from __future__ import annotations

import asyncio
import os
import socket
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boatyard.model.errors import NotFound, Refused
from boatyard.resources.cluster_templates.contents import ContentFolders
from boatyard.roles.content import (
    LARGEST_CONTENT,
    RoleFileContent,
    digest_of,
    pack_files,
    path_problem,
    unpack_files,
)
from boatyard.roles.folder import read_folder
from boatyard.roles.mistakes import Mistake
from tests.support.roles import files, write

names = st.text("abc/.-_é", min_size=1, max_size=12).filter(lambda name: not path_problem(name))
contents = st.dictionaries(names, st.builds(RoleFileContent, st.binary(max_size=20), st.booleans()))


def read(folder: Path) -> tuple[dict[str, RoleFileContent], list[str]]:
    mistakes: list[Mistake] = []
    return dict(read_folder(folder, mistakes)), [str(one) for one in mistakes]


@given(contents)
def test_what_was_packed_is_unpacked(made: dict[str, RoleFileContent]) -> None:
    digest, packed = pack_files(made)

    assert digest == digest_of(dict(reversed(made.items())))
    assert unpack_files(packed, digest) == made


@given(contents, contents)
def test_other_files_have_another_digest(
    one: dict[str, RoleFileContent], two: dict[str, RoleFileContent]
) -> None:
    assert (digest_of(one) == digest_of(two)) == (one == two)


@pytest.mark.parametrize(
    "one, two",
    [
        pytest.param({"a": b"b"}, {"ab": b""}, id="a name that runs into the bytes"),
        pytest.param({"a": b"", "b": b""}, {"a": b"b"}, id="two files or one"),
        pytest.param({"a/b": b""}, {"a": b"/b"}, id="a folder"),
    ],
)
def test_files_that_look_alike_are_told_apart(one: dict[str, bytes], two: dict[str, bytes]) -> None:
    digests = {
        digest_of({name: RoleFileContent(data) for name, data in made.items()})
        for made in (one, two)
    }

    assert len(digests) == 2


def test_the_digest_is_a_known_one() -> None:
    """Changing how it is made would part every cluster from its content."""
    assert digest_of({"a": RoleFileContent(b"x"), "b/c": RoleFileContent(b"", True)}) == (
        "sha256:705913a45984916a175c47f13cdedaca75e89968206aed323dcd2a7320f0c574"
    )


def test_times_owners_and_rubbish_make_no_difference(tmp_path: Path) -> None:
    one, two = write(tmp_path / "one", files()), write(tmp_path / "two", files())
    os.utime(two / "meta/template.yaml", (1, 1))
    (two / "meta/template.yaml").chmod(0o600)
    write(
        two, {".git/HEAD": RoleFileContent(b"x"), "tasks/__pycache__/a.pyc": RoleFileContent(b"x")}
    )
    write(two, {"tasks/main.yaml~": RoleFileContent(b"x"), ".DS_Store": RoleFileContent(b"x")})

    assert digest_of(read(one)[0]) == digest_of(read(two)[0]) == digest_of(files())
    (two / "meta/template.yaml").chmod(0o755)
    assert digest_of(read(one)[0]) != digest_of(read(two)[0])


def test_a_link_inside_the_role_is_the_file_it_leads_to(tmp_path: Path) -> None:
    folder = write(tmp_path / "role", files())
    (folder / "tasks/delete.yaml").symlink_to("post_install.yaml")

    found, mistakes = read(folder)

    assert mistakes == []
    assert found["tasks/delete.yaml"] == found["tasks/post_install.yaml"]


def test_what_leads_out_of_the_role_is_refused_and_not_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("hunter2")
    folder = write(tmp_path / "role", files())
    (folder / "a").symlink_to(secret)
    (folder / "b").symlink_to("../secret")
    (folder / "c").symlink_to(tmp_path)
    (folder / "d").symlink_to("nowhere")
    (folder / "e").symlink_to("meta")
    (folder / "f").symlink_to("/proc/self/environ")

    found, mistakes = read(folder)

    assert not {"a", "b", "c", "d", "e", "f"} & found.keys()
    assert [one.partition(":")[0] for one in mistakes] == list("abcdef")
    assert not any(b"hunter2" in file.data for file in found.values())


def test_what_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    folder = write(tmp_path / "role", files())
    os.mkfifo(folder / "pipe")
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(folder / "socket"))

        found, mistakes = read(folder)

    assert {one.partition(":")[0] for one in mistakes} == {"pipe", "socket"}
    assert found.keys() == files().keys()


def test_what_is_too_large_is_refused(tmp_path: Path) -> None:
    folder = write(tmp_path / "role", {"big": RoleFileContent(b"x" * (1024 * 1024 + 1))})
    many = write(tmp_path / "many", {f"f{n}": RoleFileContent(b"x" * 2**20) for n in range(4)})

    assert "big: has more than 1048576 bytes" in read(folder)[1][0]
    assert "the role has 4194304 bytes, more than" in read(many)[1][0]


@pytest.mark.parametrize("name", ["../x", "/x", "a//b", "a/./b", "a/../../b", "", "a\nb", "a\\b"])
def test_a_name_that_leads_elsewhere_is_no_name(name: str) -> None:
    assert path_problem(name)
    digest, packed = pack_files({name: RoleFileContent(b"x")})
    with pytest.raises(Refused):
        unpack_files(packed, digest)


def test_content_that_was_changed_is_refused() -> None:
    digest, packed = pack_files(files())
    plain = zlib.decompress(packed)
    other = zlib.compress(plain.replace(b"hello", b"HELLO"))

    for spoilt in (other, packed[:-4], packed + b"x", b"", b"nonsense"):
        with pytest.raises(Refused):
            unpack_files(spoilt, digest)


def test_a_bomb_is_not_unpacked() -> None:
    with pytest.raises(Refused):
        unpack_files(zlib.compress(b"\0" * 2**26), "sha256:" + "0" * 64)


# --- as folders ------------------------------------------------------------------------------------


class PublishedContent:
    """What was published, and how often it was asked for."""

    def __init__(self) -> None:
        self.digest, self.packed = pack_files(files())
        self.asked = 0

    async def fetch(self, digest: str) -> bytes | None:
        self.asked += 1
        return self.packed if digest == self.digest else None


async def test_content_is_a_folder_made_once(tmp_path: Path) -> None:
    store = PublishedContent()
    folders = ContentFolders(tmp_path / "contents", store.fetch)

    first = await folders.ensure_folder(store.digest)
    again = await folders.ensure_folder(store.digest)

    assert first == again
    assert store.asked == 1
    assert digest_of(read(first)[0]) == store.digest
    assert sorted(path.name for path in first.parent.iterdir()) == [first.name]


@pytest.mark.parametrize("spoil", ["changed", "missing", "added", "hidden", "half"])
async def test_a_spoilt_folder_is_mended(tmp_path: Path, spoil: str) -> None:
    store = PublishedContent()
    folders = ContentFolders(tmp_path / "contents", store.fetch)
    folder = await folders.ensure_folder(store.digest)
    tasks = folder / "tasks/post_install.yaml"
    match spoil:
        case "changed":
            tasks.chmod(0o644)
            tasks.write_text("- other")
        case "missing":
            tasks.unlink()
        case "added":
            (folder / "tasks/main.yaml").write_text("[]")
        case "hidden":
            write(folder, {"tasks/__pycache__/x.pyc": RoleFileContent(b"x")})
        case "half":  # a process died while it wrote, beside
            (folder.parent / ".new-x").mkdir()

    mended = await folders.ensure_folder(store.digest)

    mistakes: list[Mistake] = []
    assert digest_of(read_folder(mended, mistakes, everything=True)) == store.digest


async def test_several_may_ask_at_once(tmp_path: Path) -> None:
    store = PublishedContent()
    folders = [ContentFolders(tmp_path / "contents", store.fetch) for _ in range(8)]

    found = await asyncio.gather(*(one.ensure_folder(store.digest) for one in folders))

    assert len(set(found)) == 1
    assert digest_of(read(found[0])[0]) == store.digest
    assert len(list((tmp_path / "contents").iterdir())) == 1


async def test_what_was_never_published_is_not_found(tmp_path: Path) -> None:
    folders = ContentFolders(tmp_path, PublishedContent().fetch)

    with pytest.raises(NotFound):
        await folders.ensure_folder("sha256:" + "0" * 64)
    for nonsense in ("", "../../etc", "sha256:../x"):
        with pytest.raises(Refused):
            await folders.ensure_folder(nonsense)


def test_what_unpacks_to_too_much_is_refused_with_the_right_digest_too() -> None:
    digest, packed = pack_files({"tasks/main.yml": RoleFileContent(bytes(2 * LARGEST_CONTENT))})
    assert len(packed) < LARGEST_CONTENT / 100

    with pytest.raises(Refused):
        unpack_files(packed, digest)
