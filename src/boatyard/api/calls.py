"""The table of all methods of the API and the functions behind them. Built once; both servers call through it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from google.protobuf.message import DecodeError, Message

from boatyard.api import fields, policy
from boatyard.api.access import Access
from boatyard.api.crud import Call, Crud
from boatyard.api.errors import Unimplemented
from boatyard.api.hubs import Hubs
from boatyard.api.kinds import OURS, PRIVATE, PUBLIC, VIEWS, View
from boatyard.api.orders import Orders, http_body
from boatyard.api.role_runs import RoleRuns
from boatyard.api.stories import Stories
from boatyard.api.templates import Templates
from boatyard.api.updates import update
from boatyard.api.watch import Part, Watches
from boatyard.model import wire
from boatyard.model.caller import Caller
from boatyard.model.errors import Denied, Refused
from boatyard.resources.hubs.access import HubAccess
from boatyard.resources.orders.elsewhere import Elsewhere

Unary = Callable[[Any, Call], Awaitable[Message]]
Begun = Callable[[str], Awaitable[None]]
Stream = Callable[[Any, Call, Begun], AsyncIterator[Part]]

# Calls that need no token.
_ANONYMOUS = {f"{PUBLIC}.Capabilities/Get"}
# The only service that a run of a role may call.
ROLE_RUNS = f"{OURS}.RoleRuns"
# The OSAC service answers these with Unimplemented too.
_LEFT_OUT = {f"{PUBLIC}.Tenants/{rpc}" for rpc in ("Create", "Update", "Delete")}


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
    def anonymous(self) -> bool:
        return self.name in _ANONYMOUS

    def admit(self, caller: Caller) -> Caller:
        """Raises Denied when the token of a run is used for any service but RoleRuns."""
        if caller.run is not None and self.service != ROLE_RUNS:
            raise Denied(
                "the token of a run opens nothing but what the run may ask of its own order"
            )
        return caller

    @property
    def served(self) -> bool:
        return self.unary is not None or self.stream is not None

    def parse(self, data: bytes) -> Message:
        try:
            return self.request.FromString(data)
        except DecodeError as error:
            name = self.request.DESCRIPTOR.name
            raise Refused(f"the message cannot be read as a {name}") from error

    async def answer(self, request: Any, call: Call) -> Message:
        if self.unary is None:
            raise Unimplemented(f"{self.name} is not served")
        return await self.unary(request, call)

    def parts(self, request: Any, call: Call, on_start: Begun) -> AsyncIterator[Part]:
        if self.stream is None:
            raise Unimplemented(f"{self.name} is not served")
        return self.stream(request, call, on_start)


def methods(
    crud: Crud,
    watches: Watches,
    hub_access: HubAccess | None = None,
    elsewhere: Elsewhere | None = None,
) -> Mapping[str, Mapping[str, Method]]:
    """Returns the methods of every service, by full service name and then by method name."""
    orders = Orders(crud, watches, elsewhere)
    access, hubs = Access(crud, elsewhere=elsewhere), Hubs(crud, hub_access)
    templates, runs = Templates(crud), RoleRuns(crud, elsewhere)
    stories = Stories(crud, watches, orders)
    table: dict[str, dict[str, Method]] = {}
    for service in wire.services().values():
        answers = _answers(service.full_name, crud, watches, orders, access)
        if service.full_name == f"{OURS}.Hubs":
            answers = {"Check": hubs.check, "Prepare": hubs.prepare}
        if service.full_name == f"{OURS}.Templates":
            answers = {"GetSchema": templates.schema, "Publish": templates.publish}
        if service.full_name == f"{OURS}.Stories":
            answers = {"Read": stories.read, "Watch": stories.watch}
        if service.full_name == ROLE_RUNS:
            answers = {"Ask": runs.ask, "Get": runs.get}
        table[service.full_name] = {
            call.name: Method(
                service=service.full_name,
                rpc=call.name,
                request=wire.message(call.input_type.full_name),
                response=wire.message(call.output_type.full_name),
                streaming=call.server_streaming,
                unary=None if call.server_streaming else answers.get(call.name),
                stream=answers.get(call.name) if call.server_streaming else None,
            )
            for call in service.methods
        }
    return table


def _answers(
    service: str, crud: Crud, watches: Watches, orders: Orders, access: Access
) -> Mapping[str, Callable[..., Any]]:
    package, _, name = service.rpartition(".")
    answers: dict[str, Callable[..., Any]] = {}
    if service in VIEWS:
        answers |= _generic(VIEWS[service], crud, _messages(package, name))
    if name == "Events":
        answers["Watch"] = lambda request, call, on_start: watches.watch(
            package, request, call, on_start
        )
    if name == "Capabilities":
        answers["Get"] = _capabilities(package)
    if service == f"{PUBLIC}.Clusters":
        answers |= _credentials(orders, _messages(package, name))
    if service == f"{OURS}.Orders":
        answers |= {
            "Explain": orders.explain,
            "Follow": orders.follow,
            "Retry": orders.retry,
            "GetReceipt": orders.receipt,
            "History": orders.history,
        }
    if service == f"{OURS}.Access":
        answers["Issue"] = access.issue
    return {rpc: run for rpc, run in answers.items() if f"{service}/{rpc}" not in _LEFT_OUT}


def _messages(package: str, service: str) -> Callable[[str], type[Message]]:
    return lambda rpc: wire.message(f"{package}.{service}{rpc}Response")


def _generic(
    view: View, crud: Crud, response: Callable[[str], Callable[..., Message]]
) -> Mapping[str, Unary]:
    """The methods that every kind has. Kinds without rules are written by the service alone, and are read only here."""
    to_fields = view.to_fields
    private = view.kind.operators_only

    def show(doc: Any, call: Call) -> dict[str, Any]:
        if private and not call.caller.is_operator:
            doc = fields.cleared(doc, private)
        return to_fields(doc)

    async def get(request: Any, call: Call) -> Message:
        return answer_get(object=show(await crud.get(view, request.id, call), call))

    async def list_(request: Any, call: Call) -> Message:
        page = await crud.list(view, request, call)
        items = [show(doc, call) for doc in page.items]
        return answer_list(size=len(items), total=page.total, items=items)

    async def create(request: Any, call: Call) -> Message:
        return answer_create(object=show(await crud.create(view, request.object, call), call))

    async def update_(request: Any, call: Call) -> Message:
        return answer_update(object=show(await update(crud, view, request, call), call))

    async def delete(request: Any, call: Call) -> Message:
        await crud.delete(view, request.id, call)
        return answer_delete()

    async def signal(request: Any, call: Call) -> Message:
        await crud.signal(view, request.id, call)
        return response("Signal")()

    answer_get, answer_list = response("Get"), response("List")
    reading: dict[str, Unary] = {"Get": get, "List": list_}
    if view.kind.rules is None:
        return reading
    answer_create, answer_delete = response("Create"), response("Delete")
    writing: dict[str, Unary] = {"Create": create, "Delete": delete}
    if view.kind.ours:
        return reading | writing  # a backup does not change once it is taken
    answer_update = response("Update")
    writing["Update"] = update_
    return reading | writing | ({"Signal": signal} if view.private else {})


def _credentials(
    orders: Orders, response: Callable[[str], Callable[..., Message]]
) -> Mapping[str, Unary]:
    async def kubeconfig(request: Any, call: Call) -> Message:
        return response("GetKubeconfig")(kubeconfig=await orders.kubeconfig(request, call))

    async def kubeconfig_via_http(request: Any, call: Call) -> Message:
        return http_body(await orders.kubeconfig(request, call), "application/yaml")

    async def password(request: Any, call: Call) -> Message:
        return response("GetPassword")(password=await orders.password(request, call))

    async def password_via_http(request: Any, call: Call) -> Message:
        return http_body(await orders.password(request, call), "text/plain")

    return {
        "GetKubeconfig": kubeconfig,
        "GetKubeconfigViaHttp": kubeconfig_via_http,
        "GetPassword": password,
        "GetPasswordViaHttp": password_via_http,
    }


def _capabilities(package: str) -> Unary:
    response = wire.message(f"{package}.CapabilitiesGetResponse")

    async def get(_request: Any, call: Call) -> Message:
        """No issuer is named: tokens are made by `boatyard token create`, not by a login page."""
        if package == PRIVATE:
            policy.check(call.caller, policy.Verb.GET, "Capabilities", private=True)
        return response(authn={})

    return get
