"""Watches folders of roles and keeps the catalogue in step with them. Started by `up` and `serve`.

Each look lists names, sizes and times. Files are read only when these have changed and were then the same in two
looks, so that a role is not judged while it is being copied.
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
from boatyard.resources.cluster_templates.publisher import TemplatePublisher
from boatyard.roles.content import Files
from boatyard.roles.folder import is_ignored, read_folder
from boatyard.roles.mistakes import Mistake
from boatyard.roles.role import is_template
from boatyard.wiring.settings import Settings

logger = logging.getLogger(__name__)

SCAN_SECONDS = 0.5  # between two looks
RETRY_SECONDS = 10.0  # before a role that could not be offered is tried again
CONTENTS_FOLDER = "contents"  # where published content is unpacked, in the data directory
OWN_ROLES_FOLDER = "roles"  # in the data directory; watched unless the setting names other folders
_MOST_ENTRIES = 5000

# Inside the package, as in a wheel; else in the checked-out repository.
_INSTALLED_FOLDER = Path(__file__).parents[1] / "templates" / "roles"
_CHECKED_OUT_FOLDER = Path(__file__).parents[3] / "templates" / "roles"

RoleSnapshot = tuple[tuple[str, int, int, int], ...]


def watched_folders(settings: Settings) -> Sequence[Path]:
    """The folders of the setting; without one, the shipped roles and the folder in the data directory."""
    if settings.templates:
        return [Path(name).expanduser().absolute() for name in settings.templates]
    own = settings.data_dir / OWN_ROLES_FOLDER
    shipped = next(
        (path for path in (_INSTALLED_FOLDER, _CHECKED_OUT_FOLDER) if path.is_dir()), None
    )
    return [own] if settings.bare or shipped is None else [shipped, own]


def content_folders(ledger: Ledger, settings: Settings) -> ContentFolders:
    """The published content of roles as folders, for the runner of roles in this process."""
    return ContentFolders(settings.data_dir / CONTENTS_FOLDER, ledger.contents.get)


@asynccontextmanager
async def watch_folders(ledger: Ledger, folders: Sequence[Path]) -> AsyncIterator[None]:
    """Watches the folders until the context is left. Shipped roles are offered before it is entered."""
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
    """Keeps the offered templates equal to the roles in the folders."""

    def __init__(self, ledger: Ledger, folders: Sequence[Path]) -> None:
        self._offering = TemplatePublisher(ledger)
        self._folders = folders
        self._last_snapshots: dict[Path, RoleSnapshot] = {}  # each role as it was at the last look
        self._handled_snapshots: dict[Path, RoleSnapshot] = {}  # each role as it was when handled
        self._retry_times: dict[
            Path, float
        ] = {}  # when to handle a role again although it has not changed
        self._complete_names: dict[
            Path, set[str]
        ] = {}  # role names for which all others were withdrawn
        self._unreadable_folders: set[Path] = set()  # folders that cannot be listed, logged once

    async def offer_shipped(self) -> None:
        """Offers the shipped roles at once, without a second look: nobody writes there. `run` retries failures."""
        now = asyncio.get_running_loop().time()
        for folder in self._folders:
            if folder in (_INSTALLED_FOLDER, _CHECKED_OUT_FOLDER):
                for path, look in (await asyncio.to_thread(_scan_folder, folder) or {}).items():
                    await self._offer_role(path, look, folder, now)

    async def run(self) -> None:
        """Looks at the folders until cancelled. A role that fails is logged and retried; others are not affected."""
        while True:
            pause = SCAN_SECONDS
            try:
                await self.scan()
            except BoatyardError as error:
                logger.warning("template folders not read", extra={"why": str(error)})
                pause = RETRY_SECONDS
            await asyncio.sleep(pause)

    async def scan(self) -> None:
        """Looks once at all folders: offers roles that have changed, withdraws roles that are gone."""
        now = asyncio.get_running_loop().time()
        missing_names: set[str] = set()
        names: dict[Path, set[str]] = {}
        for folder in self._folders:
            looks = await asyncio.to_thread(_scan_folder, folder)
            if looks is None:
                # The disk may come back: nothing is withdrawn.
                self._log_unreadable(folder)
                continue
            self._unreadable_folders.discard(folder)
            for path, look in looks.items():
                if self._is_due(path, look, now):
                    await self._offer_role(path, look, folder, now)
            names[folder] = {path.name for path in looks} | {
                path.name for path in self._last_snapshots if path.parent == folder
            }
            if self._complete_names.get(folder) != names[folder]:
                missing_names |= await self._find_missing_roles(folder, names[folder])
            self._drop_missing_roles(folder, looks)
        for name in sorted(missing_names):
            await self._offering.withdraw(name)
        self._complete_names |= names

    def _is_due(self, path: Path, snapshot: RoleSnapshot, now: float) -> bool:
        if self._last_snapshots.get(path) != snapshot:
            return False  # it is still being written
        return (
            self._handled_snapshots.get(path) != snapshot
            or self._retry_times.get(path, now + 1) <= now
        )

    async def _offer_role(
        self, path: Path, snapshot: RoleSnapshot, folder: Path, now: float
    ) -> None:
        mistakes: list[Mistake] = []
        files: Files = await asyncio.to_thread(read_folder, path, mistakes)
        self._retry_times.pop(path, None)
        if not is_template(files) and not mistakes:
            self._handled_snapshots[path] = snapshot  # a role that only other roles use
            return
        try:
            source = await self._offering.publish(
                path.name, files, origin=str(folder), mistakes=mistakes
            )
        except BoatyardError as error:
            logger.warning("role not offered yet", extra={"role": path.name, "why": str(error)})
            return
        except Exception:  # one author's role must not stop the server for all
            logger.exception("role cannot be read", extra={"role": path.name})
            self._handled_snapshots[path] = snapshot
            return
        if source.status.state == TemplateSourceState.FAULTY:
            if self._handled_snapshots.get(path) != snapshot:
                logger.warning("role not offered", extra=_log_fields(path, source))
            # A missing host type or version may be added, another role of that name may go.
            self._retry_times[path] = now + RETRY_SECONDS
        self._handled_snapshots[path] = snapshot

    async def _find_missing_roles(self, folder: Path, names: set[str]) -> set[str]:
        """Roles that this folder offered and that were missing in the last two looks."""
        return {
            source.id
            for source in await self._offering.list_sources()
            if source.status.origin == str(folder)
            and source.status.state != TemplateSourceState.WITHDRAWN
            and source.id not in names
        }

    def _drop_missing_roles(self, folder: Path, looks: Mapping[Path, RoleSnapshot]) -> None:
        """Forgets roles that are no longer in the folder, so that one that comes back is handled as new."""
        for path in [
            known_path
            for known_path in self._handled_snapshots
            if known_path.parent == folder and known_path not in looks
        ]:
            del self._handled_snapshots[path]
        others = {
            path: look for path, look in self._last_snapshots.items() if path.parent != folder
        }
        self._last_snapshots = {**others, **looks}

    def _log_unreadable(self, folder: Path) -> None:
        if folder not in self._unreadable_folders:
            self._unreadable_folders.add(folder)
            logger.warning("folder of roles cannot be listed", extra={"folder": str(folder)})


def _log_fields(path: Path, source: TemplateSource) -> dict[str, object]:
    mistakes = [
        f"{mistake.file}:{mistake.line}: {mistake.path}: {mistake.message}"
        for mistake in source.status.mistakes
    ]
    return {"role": path.name, "folder": str(path.parent), "mistakes": mistakes}


def _scan_folder(folder: Path) -> dict[Path, RoleSnapshot] | None:
    """The names, sizes and times of every role in the folder; None when the folder cannot be listed."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return None
    return {
        Path(entry.path): _scan_role(Path(entry.path))
        for entry in entries
        if entry.is_dir() and not entry.name.startswith(".") and not is_ignored(entry.name)
    }


def _scan_role(path: Path) -> RoleSnapshot:
    files: list[tuple[str, int, int, int]] = []
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(folder_name for folder_name in folders if not is_ignored(folder_name))
        for name in sorted(names):
            try:
                status = os.lstat(os.path.join(folder, name))
            except OSError:
                continue  # removed meanwhile
            place = os.path.relpath(os.path.join(folder, name), path)
            files.append((place, status.st_size, status.st_mtime_ns, status.st_ctime_ns))
        if len(files) > _MOST_ENTRIES:
            break
    return tuple(files)
