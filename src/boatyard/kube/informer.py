"""Keeps a local copy of all objects of one kind, and tells which of them changed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import aclosing
from typing import Any

from boatyard.kube.client import KubeClient, KubeObject
from boatyard.kube.errors import Expired
from boatyard.kube.kinds import KubeKind
from boatyard.kube.watch_stream import BOOKMARK, DELETED
from boatyard.model.backoff import Backoff
from boatyard.model.errors import BoatyardError, Refused, Unavailable

logger = logging.getLogger(__name__)

Key = str  # "namespace/name", or "name" for kinds without a namespace
OnChange = Callable[[Key, KubeObject | None, KubeObject | None], None]


def object_key(item: Mapping[str, Any]) -> Key:
    metadata = item["metadata"]
    namespace = metadata.get("namespace")
    return f"{namespace}/{metadata['name']}" if namespace else str(metadata["name"])


def split_key(key: Key) -> tuple[str, str]:
    """Namespace and name."""
    namespace, _, name = key.rpartition("/")
    return namespace, name


def drop_managed_fields(item: KubeObject) -> KubeObject:
    """The object without managedFields, which are often half of its size and are not used here."""
    item["metadata"].pop("managedFields", None)
    return item


class Informer:
    """Lists, watches, resumes, and lists again when the watch expired. Reports each changed object in its last state.

    `run` does the work, in a task of the caller. `next` returns the keys of changed objects; with `on_change`, that
    function is called at each change instead and `next` gets no keys. While the server does not answer, the copy
    stays as it was, `problem` says why, and the pauses between attempts grow.
    """

    def __init__(
        self,
        client: KubeClient,
        kind: KubeKind,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        on_change: OnChange | None = None,
        shape: Callable[[KubeObject], KubeObject] = drop_managed_fields,
        streaming: bool = False,
        first_pause: float = 0.2,
        longest_pause: float = 30.0,
        seconds: int = 300,
        silence: float = 120.0,
    ) -> None:
        self.kind = kind
        self.synced = asyncio.Event()
        """Set once all objects that existed at the start are in the copy."""
        self.problem = ""
        """Why the copy may be out of date; empty while the watch works."""
        self._client = client
        self._namespace = namespace
        self._selectors: Any = {"labels": labels, "fields": fields}
        self._on_change = on_change
        self._trim_object = shape
        self._streaming = streaming
        self._backoff = Backoff(first=first_pause, longest=longest_pause)
        self._watch_limits: Any = {"seconds": seconds, "silence": silence}
        self._store: dict[Key, KubeObject] = {}
        self._dirty: dict[Key, None] = {}  # in the order of their first change
        self._changed = asyncio.Event()
        self._ended = False
        self._version = ""  # resume from here; empty: list first
        self._failures = 0  # in a row
        self._relists = 0  # in a row, without an event between them

    # --- reading the copy -------------------------------------------------------------------

    def get(self, key: Key) -> KubeObject | None:
        """The last known state; None when there is no such object. The caller must not change it."""
        return self._store.get(key)

    def items(self) -> Iterator[tuple[Key, KubeObject]]:
        return iter(list(self._store.items()))

    def __len__(self) -> int:
        return len(self._store)

    # --- changed keys -----------------------------------------------------------------------

    async def next_key(self) -> Key:
        """The key whose first unread change is oldest; several changes of one key are returned once.

        Waits while there is none; Unavailable when the informer has ended.
        """
        while not self._dirty:
            if self._ended:
                raise Unavailable(f"the informer of {self.kind.plural} has ended", reason="Closed")
            self._changed.clear()
            await self._changed.wait()
        key = next(iter(self._dirty))
        del self._dirty[key]
        return key

    def mark_changed(self, key: Key) -> None:
        """Makes `next` return this key again, as if it had changed."""
        self._dirty[key] = None
        self._changed.set()

    @property
    def pending_count(self) -> int:
        """The number of changed keys that `next` has not returned yet."""
        return len(self._dirty)

    # --- listing and watching ---------------------------------------------------------------

    async def run(self) -> None:
        """Keeps the copy up to date until cancelled or the client is closed."""
        try:
            while not self._client.closed.is_set():
                try:
                    await self._list_and_watch()
                except Expired:
                    self._version = ""  # the events in between are lost: compare with a list
                    self._relists += 1
                    self._failures = (
                        self._relists - 1
                    )  # the first time at once, then with growing pauses
                    logger.debug(
                        "watch expired, objects are listed again", extra={"kind": self.kind.plural}
                    )
                except BoatyardError as error:
                    self._record_failure(error)
                await self._wait_before_retry()
        finally:
            self._ended = True
            self._changed.set()

    async def _list_and_watch(self) -> None:
        """One list when needed, then one watch. Returns when the server ended the watch regularly."""
        initial = not self._version and self._streaming
        if not self._version and not initial:
            await self._list()
        try:
            await self._watch(initial=initial)
        except Refused:
            if not initial:
                raise
            self._streaming = (
                False  # the server does not support initial events: list first from now on
            )

    async def _list(self) -> None:
        listed = await self._client.list(self.kind, self._namespace, **self._selectors)
        items_by_key = {object_key(item): item for item in listed.items}
        for key in self._store.keys() - items_by_key.keys():
            self._store_object(key, None)
        for key, item in items_by_key.items():
            self._store_object(key, item)
        self._version = listed.resource_version
        self._clear_problem()
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
            **self._selectors,
            **self._watch_limits,
        )
        async with aclosing(watch) as stream:
            async for event in stream:
                events += 1
                if event.type != BOOKMARK:
                    key = object_key(event.object)
                    self._store_object(key, None if event.type == DELETED else event.object)
                    if initial_keys is not None:
                        initial_keys.add(key)
                elif initial_keys is not None and event.is_initial_end:
                    for key in self._store.keys() - initial_keys:
                        self._store_object(key, None)
                    initial_keys = None
                    self.synced.set()
                if (
                    initial_keys is None
                ):  # before that, resuming would miss objects that were not sent yet
                    self._version = event.resource_version
                    self._relists = 0
                    self._clear_problem()
        if events == 0 and loop.time() - started < 1.0:
            raise Unavailable(f"watch of {self.kind.plural} ended at once", reason="Cut")
        self._clear_problem()

    def _store_object(self, key: Key, item: KubeObject | None) -> None:
        before = self._store.get(key)
        if item is None:
            if before is None:
                return
            del self._store[key]
        else:
            if before is not None and _is_same_version(before, item):
                return
            item = self._store[key] = self._trim_object(item)
        if self._on_change is None:
            self.mark_changed(key)
        else:  # nobody calls `next` then: the keys would pile up
            self._on_change(key, before, item)

    def _clear_problem(self) -> None:
        self.problem, self._failures = "", 0

    def _record_failure(self, error: BoatyardError) -> None:
        self._failures += 1
        if str(error) != self.problem and not self._client.closed.is_set():
            self.problem = str(error)
            logger.warning(
                "watch failed", extra={"kind": self.kind.plural, "problem": self.problem}
            )

    @property
    def retry_delay(self) -> float:
        """Seconds until the next attempt."""
        if self._failures == 0:
            return 0.0
        return self._backoff.pause(self._failures)

    async def _wait_before_retry(self) -> None:
        """Waits before the next round: no time after success, longer after each failure, until the client closes."""
        if self._failures == 0:
            return
        try:
            async with asyncio.timeout(self.retry_delay):
                await self._client.closed.wait()
        except TimeoutError:
            return


def _is_same_version(first: KubeObject, second: KubeObject) -> bool:
    first_metadata, second_metadata = first["metadata"], second["metadata"]
    version = first_metadata.get("resourceVersion")
    return (
        version == second_metadata.get("resourceVersion")
        and first_metadata.get("uid") == second_metadata.get("uid")
        and bool(version)
    )
