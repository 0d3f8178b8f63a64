"""Watched folders of roles: dropped in, changed, spoilt, taken away, while a server runs."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from pathlib import Path

import pytest

from boatyard.ledger.ledger import Ledger
from boatyard.model.errors import Unavailable
from boatyard.model.generated.boatyard import TemplateSource, TemplateSourceState
from boatyard.model.generated.osac import ClusterTemplate
from boatyard.roles.content import Files, digest_of
from boatyard.wiring import template_folders
from boatyard.wiring.settings import Settings
from boatyard.wiring.template_folders import TemplateFolders, watch_folders, watched_folders
from tests.api.doors import ApiEnvironment
from tests.support.roles import files, write

OFFERED, FAULTY = TemplateSourceState.OFFERED, TemplateSourceState.FAULTY
WITHDRAWN = TemplateSourceState.WITHDRAWN
SETS = "node_sets: {compute: {host_type: small, size: 3}}\n"

together = pytest.mark.asyncio(loop_scope="module")  # of tests that share the suite's server


class WatchedFolder:
    """A folder and who watches it, one look at a time."""

    def __init__(self, ledger: Ledger, root: Path, *others: Path) -> None:
        self.ledger = ledger
        self.root = root
        root.mkdir(exist_ok=True)
        self.watcher = TemplateFolders(ledger, [root, *others])

    def put(self, name: str, **changes: str | None) -> Files:
        made = files(**({"template": f"id: {name}\n{SETS}"} | changes))
        write(self.root / name, made)
        return made

    async def looks(self, count: int = 2) -> None:
        for _ in range(count):
            await self.watcher.scan()

    async def state(self, name: str) -> TemplateSourceState | None:
        found = await self.ledger.documents.get(TemplateSource, name)
        return found.status.state if found is not None else None

    async def template(self, name: str) -> ClusterTemplate:
        found = await self.ledger.documents.get(ClusterTemplate, name)
        assert found is not None
        return found


@pytest.fixture
def shelf(environment: ApiEnvironment, tmp_path: Path) -> WatchedFolder:
    return WatchedFolder(environment.ledger, tmp_path / "roles")


@together
async def test_a_role_is_offered_once_it_stands_still(shelf: WatchedFolder) -> None:
    made = shelf.put("still")

    await shelf.looks(1)
    assert await shelf.state("still") is None
    write(shelf.root / "still", {"README.md": files()["meta/template.yaml"]})
    await shelf.looks(1)
    assert await shelf.state("still") is None  # it has changed since
    (shelf.root / "still" / "README.md").unlink()
    await shelf.looks(2)

    assert await shelf.state("still") == OFFERED
    assert (await shelf.template("still")).digest == digest_of(made)


@together
async def test_a_role_with_mistakes_is_not_offered_until_they_are_mended(
    shelf: WatchedFolder,
) -> None:
    shelf.put("mended", specs="argument_specs: {main: {options: {a: {type: integer}}}}")
    await shelf.looks()

    source = await shelf.ledger.documents.get(TemplateSource, "mended")
    assert source is not None
    assert source.status.state == FAULTY
    assert source.status.mistakes[0].path == "argument_specs.main.options.a.type"
    assert await shelf.ledger.documents.get(ClusterTemplate, "mended") is None
    shelf.put("mended")
    await shelf.looks()
    assert await shelf.state("mended") == OFFERED


@together
async def test_a_changed_role_is_a_new_version_and_the_old_one_is_kept(
    shelf: WatchedFolder,
) -> None:
    old = digest_of(shelf.put("versions"))
    await shelf.looks()
    new = digest_of(shelf.put("versions", tasks="- ansible.builtin.debug: {msg: new}\n"))
    await shelf.looks()

    assert (await shelf.template("versions")).digest == new != old
    for digest in (old, new):
        assert await shelf.ledger.contents.get(digest) is not None


@together
async def test_a_role_taken_away_is_withdrawn_and_comes_back(shelf: WatchedFolder) -> None:
    shelf.put("leaving")
    await shelf.looks()
    shutil.move(shelf.root / "leaving", shelf.root.parent / "leaving")

    await shelf.looks()

    assert await shelf.state("leaving") == WITHDRAWN
    assert (await shelf.template("leaving")).withdrawn
    shutil.move(shelf.root.parent / "leaving", shelf.root / "leaving")
    await shelf.looks()
    assert await shelf.state("leaving") == OFFERED
    assert not (await shelf.template("leaving")).withdrawn


@together
async def test_what_went_while_nobody_watched_is_withdrawn(shelf: WatchedFolder) -> None:
    shelf.put("unwatched")
    await shelf.looks()
    shutil.rmtree(shelf.root / "unwatched")

    await WatchedFolder(shelf.ledger, shelf.root).looks(1)

    assert await shelf.state("unwatched") == WITHDRAWN


@together
async def test_a_folder_that_cannot_be_listed_withdraws_nothing(shelf: WatchedFolder) -> None:
    shelf.put("unmounted")
    await shelf.looks()
    os.rename(shelf.root, shelf.root.with_name("away"))

    await shelf.looks(3)

    assert await shelf.state("unmounted") == OFFERED


@together
async def test_what_has_not_changed_is_not_read_again(
    shelf: WatchedFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf.put("quiet")
    await shelf.looks()
    monkeypatch.setattr(template_folders, "read_folder", None)
    monkeypatch.setattr(shelf.watcher._offering, "list_sources", None)

    await shelf.looks(3)


@together
async def test_one_that_breaks_the_reader_does_not_stop_the_others(
    shelf: WatchedFolder, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    shelf.put("a_bug")
    shelf.put("b_well")
    offer = shelf.watcher._offering.publish

    async def breaking(name: str, *arguments: object, **more: object) -> object:
        if name == "a_bug":
            raise ZeroDivisionError
        return await offer(name, *arguments, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(shelf.watcher._offering, "publish", breaking)
    await shelf.looks()

    assert await shelf.state("b_well") == OFFERED
    assert "role cannot be read" in caplog.text


@together
async def test_what_could_not_be_stored_is_tried_again(
    shelf: WatchedFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf.put("patient")
    commit = shelf.ledger.commit

    async def failing(*_: object, **__: object) -> None:
        raise Unavailable("the database is away")

    monkeypatch.setattr(shelf.ledger, "commit", failing)
    await shelf.looks()
    monkeypatch.setattr(shelf.ledger, "commit", commit)
    await shelf.looks(1)

    assert await shelf.state("patient") == OFFERED


@together
async def test_roles_that_serve_others_and_hidden_folders_are_left_alone(
    shelf: WatchedFolder,
) -> None:
    write(shelf.root / "library", {"tasks/main.yaml": files()["tasks/post_install.yaml"]})
    write(shelf.root / ".hidden", files())
    (shelf.root / "README.md").write_text("about")

    await shelf.looks()

    assert await shelf.state("library") is None
    assert await shelf.state(".hidden") is None


@together
async def test_the_first_folder_with_a_role_of_a_name_counts(
    environment: ApiEnvironment, tmp_path: Path
) -> None:
    two = tmp_path / "two"
    both = WatchedFolder(environment.ledger, tmp_path / "one", two)
    first = both.put("doubled")
    write(two / "doubled", files(template=f"id: doubled\ntitle: Other\n{SETS}"))

    await both.looks(3)

    source = await environment.ledger.documents.get(TemplateSource, "doubled")
    assert source is not None
    assert (source.status.origin, source.status.digest) == (str(both.root), digest_of(first))


@together
async def test_a_role_dropped_in_while_it_runs_is_offered_within_seconds(
    shelf: WatchedFolder,
) -> None:
    async with watch_folders(shelf.ledger, [shelf.root]):
        begun = time.monotonic()
        shelf.put("dropped")
        while await shelf.state("dropped") != OFFERED:
            assert time.monotonic() - begun < 30
            await asyncio.sleep(0.05)


@together
async def test_two_who_watch_the_same_folder_do_not_quarrel(shelf: WatchedFolder) -> None:
    for number in range(4):
        shelf.put(f"common_{number}")
    shelf.put("common_bad", specs="argument_specs: {main: {options: {a: {type: integer}}}}")
    watchers = [TemplateFolders(shelf.ledger, [shelf.root]) for _ in range(4)]

    for _ in range(3):
        await asyncio.gather(*(one.scan() for one in watchers))

    assert [await shelf.state(f"common_{number}") for number in range(4)] == [OFFERED] * 4
    assert await shelf.state("common_bad") == FAULTY


@together
async def test_mistakes_are_told_in_the_log_once(
    shelf: WatchedFolder, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(template_folders, "RETRY_SECONDS", 0.0)
    shelf.put("logged", specs="argument_specs: {main: {options: {a: {type: integer}}}}")

    await shelf.looks(5)

    told = [one for one in caplog.records if one.getMessage() == "role not offered"]
    assert len(told) == 1
    assert "'integer' is not a type" in str(vars(told[0])["mistakes"])


def test_which_folders_are_watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shipped = tmp_path / "shipped"
    shipped.mkdir()
    monkeypatch.setattr(template_folders, "_INSTALLED_FOLDER", tmp_path / "nowhere")
    monkeypatch.setattr(template_folders, "_CHECKED_OUT_FOLDER", shipped)
    data = str(tmp_path / "data")
    own = tmp_path / "data" / "roles"

    assert watched_folders(Settings(data=data)) == [shipped, own]
    assert watched_folders(Settings(data=data, bare=True)) == [own]
    assert watched_folders(Settings(data=data, templates=("/a",))) == [Path("/a")]
