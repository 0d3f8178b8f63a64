"""The table of all methods of the API and the functions behind them. Built once; both servers call through it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from google.protobuf.message import DecodeError, Message

from boatyard.api import fields, policy
from boatyard.api.access import AccessService
from boatyard.api.answers import Answers, OnStart, Part, Publisher, Stream, Unary
from boatyard.api.crud import Call, Crud
from boatyard.api.errors import Unimplemented
from boatyard.api.hubs import HubsService
from boatyard.api.kinds import OSAC_PRIVATE, OSAC_PUBLIC, VIEWS, KindView
from boatyard.api.orders import OrdersService
from boatyard.api.permissions import Verb
from boatyard.api.requests import CreateRequest, IdRequest, ListRequest, UpdateRequest
from boatyard.api.role_runs import ROLE_RUNS, RoleRunsService
from boatyard.api.run_logs import RunLogsService
from boatyard.api.templates import TemplatesService
from boatyard.api.updates import update_document
from boatyard.api.watch import EventWatchers
from boatyard.model import wire
from boatyard.model.caller import Caller
from boatyard.model.errors import Denied, Refused
from boatyard.model.generated.osac import Resource
from boatyard.resources.hubs.access import HubAccess
from boatyard.resources.orders.remote_orders import RemoteOrders

# Calls that need no token.
_ANONYMOUS_METHODS = {f"{OSAC_PUBLIC}.Capabilities/Get"}


@dataclass(frozen=True)
class Method:
    """One gRPC method: its message types, and the function that implements it, if there is one."""

    service: str
    rpc: str
    request: type[Message]
    response: type[Message]
    streaming: bool
    unary: Unary | None = None
    stream: Stream | None = None

    @cached_property
    def name(self) -> str:
        return f"{self.service}/{self.rpc}"

    @cached_property
    def is_anonymous(self) -> bool:
        return self.name in _ANONYMOUS_METHODS

    def check_run_token(self, caller: Caller) -> Caller:
        """Raises Denied when the token of a run is used for any service but RoleRunsService."""
        if caller.run is not None and self.service != ROLE_RUNS:
            raise Denied(
                "the token of a run opens nothing but what the run may ask of its own order"
            )
        return caller

    @property
    def is_served(self) -> bool:
        return self.unary is not None or self.stream is not None

    def parse(self, data: bytes) -> Message:
        try:
            return self.request.FromString(data)
        except DecodeError as error:
            name = self.request.DESCRIPTOR.name
            raise Refused(f"the message cannot be read as a {name}") from error

    async def call_unary(self, request: Message, call: Call) -> Message:
        if self.unary is None:
            raise Unimplemented(f"{self.name} is not served")
        return await self.unary(request, call)

    def call_stream(self, request: Message, call: Call, on_start: OnStart) -> AsyncIterator[Part]:
        if self.stream is None:
            raise Unimplemented(f"{self.name} is not served")
        return self.stream(request, call, on_start)


def build_methods(
    crud: Crud,
    watches: EventWatchers,
    hub_access: HubAccess | None = None,
    remote_orders: RemoteOrders | None = None,
) -> Mapping[str, Mapping[str, Method]]:
    """Returns the methods of every service, by full service name and then by method name."""
    orders = OrdersService(crud, watches, remote_orders)
    publishers: Sequence[Publisher] = (
        _Generic(crud),
        _Capabilities(),
        watches,
        orders,
        AccessService(crud, remote_orders=remote_orders),
        HubsService(crud, hub_access),
        TemplatesService(crud),
        RunLogsService(crud, watches, orders),
        RoleRunsService(crud, remote_orders),
    )
    unary: dict[str, Unary] = {}
    streams: dict[str, Stream] = {}
    for publisher in publishers:
        for service_name, answers in publisher.answers().items():
            unary |= {f"{service_name}/{rpc}": run for rpc, run in answers.unary.items()}
            streams |= {f"{service_name}/{rpc}": run for rpc, run in answers.streams.items()}
    return {
        service.full_name: {
            call.name: Method(
                service=service.full_name,
                rpc=call.name,
                request=wire.message(call.input_type.full_name),
                response=wire.message(call.output_type.full_name),
                streaming=call.server_streaming,
                unary=unary.get(f"{service.full_name}/{call.name}"),
                stream=streams.get(f"{service.full_name}/{call.name}"),
            )
            for call in service.methods
        }
        for service in wire.services().values()
    }


class _Generic:
    """Publishes the calls that every kind has."""

    def __init__(self, crud: Crud) -> None:
        self._crud = crud

    def answers(self) -> Mapping[str, Answers]:
        return {
            service: Answers(unary=_crud_calls(view, self._crud, service))
            for service, view in VIEWS.items()
        }


def _crud_calls(view: KindView, crud: Crud, service: str) -> Mapping[str, Unary]:
    """The calls of one kind. What is written by the service alone is read only here."""
    kind = view.kind
    to_fields = view.to_fields
    private = kind.operator_only_fields

    def response(rpc: str) -> Callable[..., Message]:
        return wire.message(f"{service}{rpc}Response")

    def show(doc: Resource, call: Call) -> dict[str, object]:
        if private and not call.caller.is_operator:
            doc = fields.clear_fields(doc, private)
        return to_fields(doc)

    async def get(request: IdRequest, call: Call) -> Message:
        return answer_get(object=show(await crud.get(view, request.id, call), call))

    async def list_(request: ListRequest, call: Call) -> Message:
        page = await crud.list(view, request, call)
        items = [show(doc, call) for doc in page.items]
        return answer_list(size=len(items), total=page.total, items=items)

    async def create(request: CreateRequest, call: Call) -> Message:
        return answer_create(object=show(await crud.create(view, request.object, call), call))

    async def update_(request: UpdateRequest, call: Call) -> Message:
        return answer_update(object=show(await update_document(crud, view, request, call), call))

    async def delete(request: IdRequest, call: Call) -> Message:
        await crud.delete(view, request.id, call)
        return answer_delete()

    async def signal(request: IdRequest, call: Call) -> Message:
        await crud.signal(view, request.id, call)
        return response("Signal")()

    answer_get, answer_list = response("Get"), response("List")
    reading: dict[str, Unary] = {"Get": get, "List": list_}
    if kind.written_by_service or (kind.public_read_only and not view.private):
        return reading
    answer_create, answer_delete = response("Create"), response("Delete")
    writing: dict[str, Unary] = {"Create": create, "Delete": delete}
    if kind.in_boatyard_package:
        return reading | writing  # a backup does not change once it is taken
    answer_update = response("Update")
    writing["Update"] = update_
    return reading | writing | ({"Signal": signal} if view.private else {})


class _Capabilities:
    def answers(self) -> Mapping[str, Answers]:
        return {
            f"{package}.Capabilities": Answers(unary={"Get": _get_capabilities(package)})
            for package in (OSAC_PUBLIC, OSAC_PRIVATE)
        }


def _get_capabilities(package: str) -> Unary:
    response = wire.message(f"{package}.CapabilitiesGetResponse")

    async def get(_request: Message, call: Call) -> Message:
        """No issuer is named: tokens are made by `boatyard token create`, not by a login page."""
        if package == OSAC_PRIVATE:
            policy.check(call.caller, Verb.GET, "Capabilities", private=True)
        return response(authn={})

    return get
