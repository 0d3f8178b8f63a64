"""The fields of request messages, for annotations. The messages' own classes are made at run time (wire.py).

`tests/unit/test_typed_rules.py` compares them with the descriptors.
"""

from __future__ import annotations

from collections.abc import Sequence

from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.message import Message


class ResourceMessage(Message):
    """A resource of any kind."""

    id: str


class IdRequest(Message):
    """Get, Delete and Signal of every kind, and the credentials of a cluster."""

    id: str


class ListRequest(Message):
    limit: int
    offset: int
    filter: str
    order: str


class CreateRequest(Message):
    object: ResourceMessage


class UpdateRequest(Message):
    object: ResourceMessage
    update_mask: FieldMask
    lock: bool


class OrderRequest(Message):
    """A call about the order of one cluster."""

    cluster: str


class HistoryRequest(OrderRequest):
    limit: int


class LogRequest(OrderRequest):
    run: str
    after: str


class ReadLogRequest(LogRequest):
    limit: int


class WatchLogRequest(LogRequest):
    follow: bool


class IssueRequest(OrderRequest):
    user: str
    ttl_seconds: int


class HubRequest(Message):
    hub: str


class TemplateRequest(Message):
    template: str


class RoleFileMessage(Message):
    path: str
    content: bytes
    executable: bool


class PublishRequest(Message):
    role: str
    files: Sequence[RoleFileMessage]


class RunRequest(Message):
    """A call of a role's run about its own order."""

    order: str


class StepRequest(RunRequest):
    step: str


class RunStateRequest(RunRequest):
    kubeconfig: bool


class WatchRequest(Message):
    filter: str
    after: str
