"""Watches folders of roles and keeps the catalogue in step with them. Started by `up` and `serve`.

A look is a list of names, sizes and times; files are read only when those have changed and have then stood still
from one look to the next, so that a role is not judged while it is being copied.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from boatyard.ledger.ledger import Ledger
from boatyard.model.errors import BoatyardError
from boatyard.model.generated.boatyard import TemplateSource, TemplateSourceState
from boatyard.resources.cluster_templates.contents import ContentFolders
from boatyard.resources.cluster_templates.offering import Offering
from boatyard.roles.content import Files
from boatyard.roles.folder import is_left_out, read_folder
from boatyard.roles.mistakes import Mistake
from boatyard.roles.role import is_template
from boatyard.wiring.settings import Settings

logger = logging.getLogger(__name__)

SECONDS = 0.5  # between two looks
AGAIN_SECONDS = (
    10.0  # before a role is tried again that could not be offered for want of something else
)
CONTENTS = "contents"  # where published content is unpacked, in the data directory
OWN = "roles"  # the folder of the data directory that is always watched
_MOST_ENTRIES = 5000

_INSTALLED = (
    Path(__file__).parents[1] / "templates" / "roles"
)  # inside the package, as a wheel has it
_CHECKED_OUT = Path(__file__).parents[3] / "templates" / "roles"

Look = tuple[tuple[str, int, int, int], ...]


def watched_folders(settings: Settings) -> Sequence[Path]:
    """Those of the setting, or what comes with Boatyard, and the one in the data directory."""
    if settings.templates:
        return [Path(name).expanduser().absolute() for name in settings.templates]
    own = settings.data_dir / OWN
    shipped = next((path for path in (_INSTALLED, _CHECKED_OUT) if path.is_dir()), None)
    return [own] if settings.bare or shipped is None else [shipped, own]


def content_folders(ledger: Ledger, settings: Settings) -> ContentFolders:
    """Published content as folders, for whoever runs roles in this process."""
    return ContentFolders(settings.data_dir / CONTENTS, ledger.contents.get)


@asynccontextmanager
async def watching(ledger: Ledger, folders: Sequence[Path]) -> AsyncIterator[None]:
    """Watches until left. What comes with Boatyard is on offer when it begins: nobody is writing there."""
    if not folders:
        yield
        return
    async with asyncio.TaskGroup() as tasks:
        template_folders = TemplateFolders(ledger, folders)
        await template_folders.offer_shipped()
        task = tasks.create_task(template_folders.run(), name="template folders")
        try:
            yield
        finally:
            task.cancel()


class TemplateFolders:
    """What was seen of each role, and what became of it."""

    def __init__(self, ledger: Ledger, folders: Sequence[Path]) -> None:
        self._offering = Offering(ledger)
        self._folders = folders
        self._last: dict[Path, Look] = {}  # of the look before
        self._done: dict[Path, Look] = {}  # as it was handled
        self._again: dict[Path, float] = {}  # when one is to be handled though nothing has changed
        self._complete: dict[Path, set[str]] = {}  # names for which nothing is left to withdraw
        self._silent: set[Path] = set()  # folders that cannot be listed, told once

    async def offer_shipped(self) -> None:
        """Offers the roles that come with Boatyard at once. One that cannot be is tried again in its turn."""
        now = asyncio.get_running_loop().time()
        for folder in self._folders:
            if folder in (_INSTALLED, _CHECKED_OUT):
                for path, look in (await asyncio.to_thread(_looks, folder) or {}).items():
                    await self._handle(path, look, folder, now)

    async def run(self) -> None:
        """Looks for ever. What goes wrong with one role is told and tried again; the others do not notice."""
        while True:
            pause = SECONDS
            try:
                await self.look()
            except BoatyardError as error:
                logger.warning("template folders not looked at", extra={"why": str(error)})
                pause = AGAIN_SECONDS
            await asyncio.sleep(pause)

    async def look(self) -> None:
        """One round over all folders."""
        now = asyncio.get_running_loop().time()
        missing_names: set[str] = set()
        names: dict[Path, set[str]] = {}
        for folder in self._folders:
            looks = await asyncio.to_thread(_looks, folder)
            if looks is None:
                # It may be a disk that comes back: nothing is withdrawn.
                self._tell_silent(folder)
                continue
            self._silent.discard(folder)
            for path, look in looks.items():
                if self._is_due(path, look, now):
                    await self._handle(path, look, folder, now)
            names[folder] = {path.name for path in looks} | {
                path.name for path in self._last if path.parent == folder
            }
            if self._complete.get(folder) != names[folder]:
                missing_names |= await self._gone(folder, names[folder])
            self._forget(folder, looks)
        for name in sorted(missing_names):
            await self._offering.withdraw(name)
        self._complete |= names

    def _is_due(self, path: Path, look: Look, now: float) -> bool:
        if self._last.get(path) != look:
            return False  # it is still being written
        return self._done.get(path) != look or self._again.get(path, now + 1) <= now

    async def _handle(self, path: Path, look: Look, folder: Path, now: float) -> None:
        mistakes: list[Mistake] = []
        files: Files = await asyncio.to_thread(read_folder, path, mistakes)
        self._again.pop(path, None)
        if not is_template(files) and not mistakes:
            self._done[path] = look  # a role that serves others
            return
        try:
            source = await self._offering.offer(
                path.name, files, origin=str(folder), mistakes=mistakes
            )
        except BoatyardError as error:
            logger.warning("role not offered yet", extra={"role": path.name, "why": str(error)})
            return
        except Exception:  # what one author wrote must not stop the server for all
            logger.exception("role cannot be read", extra={"role": path.name})
            self._done[path] = look
            return
        if source.status.state == TemplateSourceState.FAULTY:
            if self._done.get(path) != look:
                logger.warning("role not offered", extra=_told(path, source))
            # A host type or a version may come, another role of that name may go.
            self._again[path] = now + AGAIN_SECONDS
        self._done[path] = look

    async def _gone(self, folder: Path, names: set[str]) -> set[str]:
        """Roles that this folder offered and no longer has, by two looks."""
        return {
            source.id
            for source in await self._offering.sources()
            if source.status.origin == str(folder)
            and source.status.state != TemplateSourceState.WITHDRAWN
            and source.id not in names
        }

    def _forget(self, folder: Path, looks: Mapping[Path, Look]) -> None:
        """What is no longer there comes back as something new."""
        for path in [
            known_path
            for known_path in self._done
            if known_path.parent == folder and known_path not in looks
        ]:
            del self._done[path]
        others = {path: look for path, look in self._last.items() if path.parent != folder}
        self._last = {**others, **looks}

    def _tell_silent(self, folder: Path) -> None:
        if folder not in self._silent:
            self._silent.add(folder)
            logger.warning("folder of roles cannot be listed", extra={"folder": str(folder)})


def _told(path: Path, source: TemplateSource) -> dict[str, object]:
    mistakes = [
        f"{mistake.file}:{mistake.line}: {mistake.path}: {mistake.message}"
        for mistake in source.status.mistakes
    ]
    return {"role": path.name, "folder": str(path.parent), "mistakes": mistakes}


def _looks(folder: Path) -> dict[Path, Look] | None:
    """Every role of the folder as it looks now; None when the folder cannot be listed."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return None
    return {
        Path(entry.path): _look(Path(entry.path))
        for entry in entries
        if entry.is_dir() and not entry.name.startswith(".") and not is_left_out(entry.name)
    }


def _look(path: Path) -> Look:
    files: list[tuple[str, int, int, int]] = []
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(folder_name for folder_name in folders if not is_left_out(folder_name))
        for name in sorted(names):
            try:
                status = os.lstat(os.path.join(folder, name))
            except OSError:
                continue  # gone a moment ago
            place = os.path.relpath(os.path.join(folder, name), path)
            files.append((place, status.st_size, status.st_mtime_ns, status.st_ctime_ns))
        if len(files) > _MOST_ENTRIES:
            break
    return tuple(files)
