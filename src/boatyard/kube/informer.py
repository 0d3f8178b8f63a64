"""A copy of the objects of one kind that is kept up to date, and the keys of those that changed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import aclosing
from typing import Any

from boatyard.kube.client import KubeClient, Object
from boatyard.kube.errors import Expired
from boatyard.kube.kinds import Kind
from boatyard.kube.watching import BOOKMARK, DELETED
from boatyard.model.errors import BoatyardError, Refused, Unavailable

logger = logging.getLogger(__name__)

Key = str  # "namespace/name", or "name" of what has no namespace
OnChange = Callable[[Key, Object | None, Object | None], None]


def key_of(item: Mapping[str, Any]) -> Key:
    metadata = item["metadata"]
    namespace = metadata.get("namespace")
    return f"{namespace}/{metadata['name']}" if namespace else str(metadata["name"])


def split_key(key: Key) -> tuple[str, str]:
    """Namespace and name."""
    namespace, _, name = key.rpartition("/")
    return namespace, name


def without_managers(item: Object) -> Object:
    """The object without managedFields, which are often half of it and nobody's business."""
    item["metadata"].pop("managedFields", None)
    return item


class Informer:
    """Lists, watches, resumes, and lists again when it must; tells each changed object once, in its last state.

    `run` does the work, in a task of the caller's; `next` gives the keys, or `on_change` is called at each change:
    then no keys are kept for `next`. While the server is away the copy stays as it
    was, `problem` says why, and tries follow each other ever more slowly.
    """

    def __init__(
        self,
        client: KubeClient,
        kind: Kind,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        on_change: OnChange | None = None,
        shape: Callable[[Object], Object] = without_managers,
        streaming: bool = False,
        first_pause: float = 0.2,
        longest_pause: float = 30.0,
        seconds: int = 300,
        silence: float = 120.0,
    ) -> None:
        self.kind = kind
        self.synced = asyncio.Event()
        """Set once everything there was has been seen."""
        self.problem = ""
        """Why the copy may be behind; empty while all is well."""
        self._client = client
        self._namespace = namespace
        self._selecting: Any = {"labels": labels, "fields": fields}
        self._on_change = on_change
        self._shape = shape
        self._streaming = streaming
        self._pauses = first_pause, longest_pause
        self._bounds: Any = {"seconds": seconds, "silence": silence}
        self._store: dict[Key, Object] = {}
        self._dirty: dict[Key, None] = {}  # in the order in which they became so
        self._wake = asyncio.Event()
        self._ended = False
        self._version = ""  # resume from here; empty: list first
        self._failures = 0  # in a row
        self._relists = 0  # in a row, without an event between them

    # --- what is known ----------------------------------------------------------------------

    def get(self, key: Key) -> Object | None:
        """The last known state; None when it is gone. Not to be changed by the caller."""
        return self._store.get(key)

    def items(self) -> Iterator[tuple[Key, Object]]:
        return iter(list(self._store.items()))

    def __len__(self) -> int:
        return len(self._store)

    # --- what changed -----------------------------------------------------------------------

    async def next(self) -> Key:
        """The key that has been changed longest; many changes of it before this call are one.

        Waits while there is none; Unavailable when the informer has ended.
        """
        while not self._dirty:
            if self._ended:
                raise Unavailable(f"the informer of {self.kind.plural} has ended", reason="Closed")
            self._wake.clear()
            await self._wake.wait()
        key = next(iter(self._dirty))
        del self._dirty[key]
        return key

    def mark(self, key: Key) -> None:
        """Makes `next` give this key again, as if it had changed."""
        self._dirty[key] = None
        self._wake.set()

    @property
    def waiting(self) -> int:
        """How many changed keys nobody has asked for yet."""
        return len(self._dirty)

    # --- the work ---------------------------------------------------------------------------

    async def run(self) -> None:
        """Keeps the copy up to date until cancelled or the client is closed."""
        try:
            while not self._client.closed.is_set():
                try:
                    await self._round()
                except Expired:
                    self._version = ""  # what happened in between is lost: compare with a list
                    self._relists += 1
                    self._failures = self._relists - 1  # at once, but not over and over at once
                    logger.debug("relisting", extra={"kind": self.kind.plural})
                except BoatyardError as error:
                    self._failed(error)
                await self._rest()
        finally:
            self._ended = True
            self._wake.set()

    async def _round(self) -> None:
        """One list when needed, one watch. Returns when the watch ended in good order."""
        initial = not self._version and self._streaming
        if not self._version and not initial:
            await self._list()
        try:
            await self._watch(initial=initial)
        except Refused:
            if not initial:
                raise
            self._streaming = False  # a server that does not know how: the plain way from now on

    async def _list(self) -> None:
        listed = await self._client.list(self.kind, self._namespace, **self._selecting)
        items_by_key = {key_of(item): item for item in listed.items}
        for key in self._store.keys() - items_by_key.keys():
            self._put(key, None)
        for key, item in items_by_key.items():
            self._put(key, item)
        self._version = listed.resource_version
        self._is_well()
        self.synced.set()

    async def _watch(self, *, initial: bool) -> None:
        loop = asyncio.get_running_loop()
        started, events = loop.time(), 0
        initial_keys: set[Key] | None = set() if initial else None
        version = self._version
        watch = self._client.watch(
            self.kind,
            self._namespace,
            resource_version=version,
            initial=initial,
            **self._selecting,
            **self._bounds,
        )
        async with aclosing(watch) as stream:
            async for event in stream:
                events += 1
                if event.type != BOOKMARK:
                    key = key_of(event.object)
                    self._put(key, None if event.type == DELETED else event.object)
                    if initial_keys is not None:
                        initial_keys.add(key)
                elif initial_keys is not None and event.ends_initial:
                    for key in self._store.keys() - initial_keys:
                        self._put(key, None)
                    initial_keys = None
                    self.synced.set()
                if initial_keys is None:  # before that, resuming would miss what was not told yet
                    self._version = event.resource_version
                    self._relists = 0
                    self._is_well()
        if events == 0 and loop.time() - started < 1.0:
            raise Unavailable(f"watch of {self.kind.plural} ended at once", reason="Cut")
        self._is_well()

    def _put(self, key: Key, item: Object | None) -> None:
        before = self._store.get(key)
        if item is None:
            if before is None:
                return
            del self._store[key]
        else:
            if before is not None and _same(before, item):
                return
            item = self._store[key] = self._shape(item)
        if self._on_change is None:
            self.mark(key)
        else:  # nobody asks for keys then: they would be kept for ever
            self._on_change(key, before, item)

    def _is_well(self) -> None:
        self.problem, self._failures = "", 0

    def _failed(self, error: BoatyardError) -> None:
        self._failures += 1
        if str(error) != self.problem and not self._client.closed.is_set():
            self.problem = str(error)
            logger.warning(
                "watching fails", extra={"kind": self.kind.plural, "problem": self.problem}
            )

    @property
    def pause(self) -> float:
        """Seconds until the next try."""
        if self._failures == 0:
            return 0.0
        first, longest = self._pauses
        return min(first * 2.0 ** min(self._failures - 1, 20), longest)

    async def _rest(self) -> None:
        """Nothing after success, ever longer after failures; closing the client ends it."""
        if self._failures == 0:
            return
        try:
            async with asyncio.timeout(self.pause):
                await self._client.closed.wait()
        except TimeoutError:
            return


def _same(first: Object, second: Object) -> bool:
    first_metadata, second_metadata = first["metadata"], second["metadata"]
    version = first_metadata.get("resourceVersion")
    return (
        version == second_metadata.get("resourceVersion")
        and first_metadata.get("uid") == second_metadata.get("uid")
        and bool(version)
    )
