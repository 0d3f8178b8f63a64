"""The API's operations for the command line, one method each, on structs of the model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from boatyard.client.connection import ApiConnection, StreamStarted, to_struct
from boatyard.client.kinds import BACKUP, CLUSTER, HUB, ClientKind
from boatyard.model.backoff import Backoff
from boatyard.model.errors import BoatyardError, Conflict, NotFound, Refused, Unavailable
from boatyard.model.generated.boatyard import (
    Backup,
    Explanation,
    HistoryEntry,
    HubReport,
    LogLine,
    Receipt,
    TemplateSource,
)
from boatyard.model.generated.convert import TO_MESSAGE
from boatyard.model.generated.osac import Cluster, ClusterRest, Hub
from boatyard.roles.content import Files

PAGE_SIZE = 1000  # the most rows that a server returns at once
_BACKOFF = Backoff(first=0.2, longest=5.0)


@dataclass(frozen=True)
class ApiObject:
    """One object of the API: the message as received (for -o json) and the struct (for everything else)."""

    message: Any
    document: Any

    @property
    def id(self) -> str:
        return str(self.document.id)


@dataclass(frozen=True)
class Listing:
    """The listed objects, and how many there are altogether."""

    rows: tuple[ApiObject, ...]
    total: int


@dataclass(frozen=True)
class IssuedAccess:
    """A kubeconfig, its expiry, and the user's name in the cluster."""

    kubeconfig: str = field(repr=False)
    expires_at: datetime
    user: str


class ReconnectBackoff:
    """Growing pauses between attempts to reach a server, or between polls."""

    def __init__(self) -> None:
        self._tries = 0

    async def sleep(self) -> None:
        self._tries += 1
        await asyncio.sleep(_BACKOFF.pause(self._tries))

    def reset(self) -> None:
        self._tries = 0


OnConnectionLost = Callable[[BoatyardError], None]


class Client(ApiConnection):
    """A connection with the verbs of the command line."""

    # --- any kind -----------------------------------------------------------------------------

    async def list(self, kind: ClientKind, *, where: str = "", limit: int | None = None) -> Listing:
        """Lists all objects page by page. Pages are ordered by id, so that deletions skip none."""
        rows: list[ApiObject] = []
        total, after = 0, ""
        while True:
            size = PAGE_SIZE if limit is None else min(PAGE_SIZE, limit - len(rows))
            text = _join_filters(where, f"this.id > {quote_text(after)}" if after else "")
            fields = {"filter": text} if text else {}
            answer = await self.call(f"{kind.service}/List", limit=size, **fields)
            page = [ApiObject(item, to_struct(item)) for item in answer.items]
            total = total or answer.total
            rows.extend(page)
            if len(page) < size or len(rows) == limit:
                return Listing(tuple(rows), max(total, len(rows)))
            after = page[-1].id

    async def find(self, kind: ClientKind, keys: Sequence[str]) -> tuple[ApiObject, ...]:
        """Returns the objects with these ids or names, in that order. NotFound names the first that is missing."""
        if not keys:
            return ()
        names = ", ".join(quote_text(key) for key in keys)
        listing = await self.list(
            kind, where=f"this.id in [{names}] || this.metadata.name in [{names}]"
        )
        return tuple(_pick_object(kind, key, listing.rows) for key in keys)

    async def find_one(self, kind: ClientKind, key: str) -> ApiObject:
        return (await self.find(kind, [key]))[0]

    async def get(self, kind: ClientKind, id: str) -> ApiObject:
        answer = await self.call(f"{kind.service}/Get", id=id)
        return ApiObject(answer.object, to_struct(answer.object))

    async def watch(
        self, kind: ClientKind, *, where: str = "", on_cut: OnConnectionLost
    ) -> AsyncGenerator[Any | None, None]:
        """Yields events about one kind, none lost and none twice over lost connections. Never ends.

        The first item is None: the watch has started, so a list made then has no gap to the events
        that follow.
        """
        if not kind.event_field or kind.package == "boatyard.v1":
            raise Refused(f"{kind.plural} cannot be watched")
        text = _join_filters(f"has(event.{kind.event_field})", where)
        after, backoff = "", ReconnectBackoff()
        while True:
            fields = {"after": after} if after else {}
            try:
                async for answer in self.stream(
                    f"{kind.package}.Events/Watch", filter=text, **fields
                ):
                    backoff.reset()
                    if isinstance(answer, StreamStarted):
                        if not after:
                            after = answer.start
                            yield None
                        continue
                    after = answer.event.id or after
                    if not answer.event.bookmark:
                        yield answer.event
            except Unavailable as error:
                if error.reason != "Timeout":
                    on_cut(error)
            except Conflict:
                pass  # we read too slowly and were cut off: resume
            await backoff.sleep()

    # --- clusters -----------------------------------------------------------------------------

    async def create_cluster(self, cluster: Cluster) -> ApiObject:
        request = TO_MESSAGE["osac.public.v1.Cluster"](cluster)
        answer = await self.call(f"{CLUSTER.service}/Create", object=request)
        return ApiObject(answer.object, to_struct(answer.object))

    async def scale_cluster(self, id: str, sizes: dict[str, int]) -> ApiObject:
        """Sets the size of the named node sets and touches nothing else."""
        answer = await self.call(
            f"{CLUSTER.service}/Update",
            object={
                "id": id,
                "spec": {"node_sets": {name: {"size": size} for name, size in sizes.items()}},
            },
            update_mask={"paths": [f"spec.node_sets.{name}.size" for name in sizes]},
        )
        return ApiObject(answer.object, to_struct(answer.object))

    async def set_cluster_rest(self, id: str, rest: ClusterRest) -> ApiObject:
        return await self._update_cluster(id, "spec.rest", {"rest": int(rest)})

    async def upgrade_cluster(self, id: str, version: str) -> ApiObject:
        """Sets the version; `version` is an id."""
        return await self._update_cluster(id, "spec.version", {"version": {"id": version}})

    async def restore_cluster(self, id: str, backup: str) -> ApiObject:
        """Restores the cluster from a backup. Each call is a new restore: the server generates its request id."""
        return await self._update_cluster(id, "spec.restore", {"restore": {"backup": backup}})

    async def _update_cluster(self, id: str, path: str, spec: dict[str, Any]) -> ApiObject:
        answer = await self.call(
            f"{CLUSTER.service}/Update",
            object={"id": id, "spec": spec},
            update_mask={"paths": [path]},
        )
        return ApiObject(answer.object, to_struct(answer.object))

    async def delete_cluster(self, id: str) -> None:
        await self.call(f"{CLUSTER.service}/Delete", id=id)

    async def get_kubeconfig(self, id: str) -> str:
        return str((await self.call(f"{CLUSTER.service}/GetKubeconfig", id=id)).kubeconfig)

    async def issue_kubeconfig(
        self, cluster: str, *, user: str, seconds: int | None
    ) -> IssuedAccess:
        """Returns a short-lived kubeconfig for `user`, or for the caller when empty."""
        fields = {} if seconds is None else {"ttl_seconds": seconds}
        answer = await self.call("boatyard.v1.Access/Issue", cluster=cluster, user=user, **fields)
        return IssuedAccess(
            kubeconfig=answer.kubeconfig,
            expires_at=answer.expires_at.ToDatetime(tzinfo=UTC),
            user=answer.user,
        )

    async def get_password(self, id: str) -> str:
        return str((await self.call(f"{CLUSTER.service}/GetPassword", id=id)).password)

    # --- backups ------------------------------------------------------------------------------

    async def create_backup(self, backup: Backup) -> ApiObject:
        request = TO_MESSAGE["boatyard.v1.Backup"](backup)
        answer = await self.call(f"{BACKUP.service}/Create", object=request)
        return ApiObject(answer.object, to_struct(answer.object))

    async def delete_backup(self, id: str) -> None:
        await self.call(f"{BACKUP.service}/Delete", id=id)

    # --- hubs ---------------------------------------------------------------------------------

    async def create_hub(self, hub: Hub) -> ApiObject:
        request = TO_MESSAGE["osac.private.v1.Hub"](hub)
        answer = await self.call(f"{HUB.service}/Create", object=request)
        return ApiObject(answer.object, to_struct(answer.object))

    async def change_hub(self, id: str, path: str, spec: dict[str, Any]) -> ApiObject:
        """Sets one field of the spec and touches nothing else."""
        answer = await self.call(
            f"{HUB.service}/Update",
            object={"id": id, "spec": spec},
            update_mask={"paths": [path]},
        )
        return ApiObject(answer.object, to_struct(answer.object))

    async def delete_hub(self, id: str) -> None:
        await self.call(f"{HUB.service}/Delete", id=id)

    async def check_hub(self, hub: str) -> tuple[Any, HubReport]:
        """Returns the report as message and as struct; `hub` is an id or a name."""
        answer = await self.call("boatyard.v1.Hubs/Check", hub=hub)
        return answer.report, to_struct(answer.report)

    async def prepare_hub(self, hub: str) -> tuple[tuple[str, ...], Any, HubReport]:
        """Returns what was installed, and the report afterwards as message and as struct."""
        answer = await self.call("boatyard.v1.Hubs/Prepare", hub=hub)
        return tuple(answer.done), answer.report, to_struct(answer.report)

    # --- templates ----------------------------------------------------------------------------

    async def get_template_schema(self, template: str) -> dict[str, Any]:
        """The form as JSON Schema; `template` is an id or a name."""
        answer = await self.call("boatyard.v1.Templates/GetSchema", template=template)
        schema: dict[str, Any] = json.loads(answer.data)
        return schema

    async def publish_role(self, name: str, files: Files) -> TemplateSource:
        """Publishes the role; the returned source says whether it is offered, and if not, why."""
        file_fields = [
            {"path": path, "content": file.data, "executable": file.executable}
            for path, file in files.items()
        ]
        answer = await self.call("boatyard.v1.Templates/Publish", role=name, files=file_fields)
        source: TemplateSource = to_struct(answer.object)
        return source

    # --- orders -------------------------------------------------------------------------------

    async def explain(self, cluster: str) -> tuple[Any, Explanation]:
        """Returns the explanation as message and as struct; `cluster` is an id or a name."""
        answer = await self.call("boatyard.v1.Orders/Explain", cluster=cluster)
        return answer.explanation, to_struct(answer.explanation)

    async def follow(
        self, cluster: str, *, on_cut: OnConnectionLost
    ) -> AsyncGenerator[Explanation, None]:
        """Yields the explanation now and after each change, over lost connections, until the cluster is gone."""
        backoff = ReconnectBackoff()
        while True:
            try:
                async for answer in self.stream("boatyard.v1.Orders/Follow", cluster=cluster):
                    if isinstance(answer, StreamStarted):
                        continue
                    backoff.reset()
                    explanation: Explanation = to_struct(answer.explanation)
                    yield explanation
                    if explanation.gone:
                        return
            except Unavailable as error:
                if error.reason != "Timeout":
                    on_cut(error)
            except Conflict:
                pass  # we read too slowly and were cut off: the next stream starts with the truth
            await backoff.sleep()

    async def retry(self, cluster: str) -> None:
        await self.call("boatyard.v1.Orders/Retry", cluster=cluster)

    async def get_receipt(self, cluster: str) -> Receipt:
        answer = await self.call("boatyard.v1.Orders/GetReceipt", cluster=cluster)
        receipt: Receipt = to_struct(answer.receipt)
        return receipt

    async def get_history(self, cluster: str, limit: int | None = None) -> tuple[HistoryEntry, ...]:
        fields = {} if limit is None else {"limit": limit}
        answer = await self.call("boatyard.v1.Orders/History", cluster=cluster, **fields)
        return tuple(to_struct(item) for item in answer.items)

    async def read_logs(
        self, cluster: str, *, run: str, follow: bool, on_cut: OnConnectionLost
    ) -> AsyncGenerator[LogLine | int, None]:
        """Yields the log lines of the cluster's runs; a number is the count of lines that are missing there.

        With `follow` it goes on over lost connections, no line lost and none twice, until the work has ended.
        """
        after, backoff = "", ReconnectBackoff()
        while True:
            fields = {"cluster": cluster, "run": run, "follow": follow, "after": after}
            try:
                async for answer in self.stream("boatyard.v1.RunLogs/Watch", **fields):
                    if isinstance(answer, StreamStarted):
                        continue
                    backoff.reset()
                    if answer.HasField("line"):
                        line: LogLine = to_struct(answer.line)
                        after = line.id
                        yield line
                    else:
                        yield int(answer.missing)
                return
            except Unavailable as error:
                if not follow:
                    raise
                if error.reason != "Timeout":
                    on_cut(error)
            except Conflict:
                pass  # we read too slowly and were cut off: go on after the last line
            await backoff.sleep()

    # --- the server ---------------------------------------------------------------------------

    async def ping(self) -> None:
        """Returns when the server answers and accepts our token."""
        await self.call("osac.public.v1.Capabilities/Get")
        await self.call("osac.public.v1.ClusterTemplates/List", limit=0)


def quote_text(text: str) -> str:
    """The text as a quoted string of a filter; special characters are escaped."""
    return json.dumps(text)


def _join_filters(first: str, second: str) -> str:
    return f"({first}) && ({second})" if first and second else first or second


def _pick_object(kind: ClientKind, key: str, rows: Sequence[ApiObject]) -> ApiObject:
    by_id = [row for row in rows if row.id == key]
    if by_id:
        return by_id[0]
    same_name = [row for row in rows if row.document.metadata.name == key]
    if not same_name:
        raise NotFound(f"there is no {kind.name} {key!r}; see `boatyard get {kind.plural}`")
    if len(same_name) > 1:
        choices = ", ".join(f"{row.id} ({_format_owner(row)})" for row in same_name)
        raise Conflict(f"{len(same_name)} {kind.plural} are called {key!r}; use an id: {choices}")
    return same_name[0]


def _format_owner(row: ApiObject) -> str:
    metadata = row.document.metadata
    return f"{metadata.tenant}/{metadata.project}" if metadata.project else str(metadata.tenant)
