"""The simulated data centre as one pure value: state and verbs, no I/O, time as an argument.

Called by the server for every request, and by `LocalTwin` where time is stepped.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from boatyard.model.errors import BoatyardError, Refused, Unavailable
from boatyard.model.outcome import Done
from boatyard.twin.faults import TwinFault, find_fault
from boatyard.twin.layout import Layout
from boatyard.twin.services import checks, control, dns, inventory, l2, l3, platform
from boatyard.twin.services.verb_context import VerbContext
from boatyard.twin.state import TwinState

LYING_VERB_PREFIXES = ("ensure_", "release_")  # verbs of these names can lie


class TwinReply(NamedTuple):
    """The answer to a call: a value or an error, after `delay`; when `silent`, none is sent."""

    value: Any = None
    error: BoatyardError | None = None
    delay: float = 0.0
    silent: bool = False


class VerbSignature(NamedTuple):
    """The arguments of a verb, so that a wrong call is Refused and not an error inside the twin."""

    run: Callable[..., Any]
    required: frozenset[str]
    types: Mapping[str, tuple[type, ...]]
    can_lie: bool


_TYPES_BY_ANNOTATION: Mapping[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "bool": (bool,),
    "float": (float, int),
    "Sequence[str]": (list, tuple),
}


def _read_signature(verb: Callable[..., Any], context_count: int) -> VerbSignature:
    """Reads the annotations, leaving out the first `context_count` arguments, which the world fills in."""
    parameters = list(inspect.signature(verb).parameters.values())[context_count:]
    return VerbSignature(
        run=verb,
        required=frozenset(
            parameter.name for parameter in parameters if parameter.default is parameter.empty
        ),
        types={
            parameter.name: _TYPES_BY_ANNOTATION.get(str(parameter.annotation), (dict, type(None)))
            for parameter in parameters
        },
        can_lie=verb.__name__.startswith(LYING_VERB_PREFIXES),
    )


SERVICES: Mapping[str, Mapping[str, Callable[..., Any]]] = {
    "inventory": inventory.VERBS,
    "l2": l2.VERBS,
    "l3": l3.VERBS,
    "dns": dns.VERBS,
    "platform": platform.VERBS,
    "checks": checks.VERBS,
}
VERBS = {
    f"{service}.{name}": _read_signature(verb, context_count=1)
    for service, verbs in SERVICES.items()
    for name, verb in verbs.items()
}
CONTROL_VERBS = {
    f"twin.{name}": _read_signature(verb, context_count=2) for name, verb in control.VERBS.items()
}


class TwinWorld:
    def __init__(self, layout: Layout | None = None, state: TwinState | None = None) -> None:
        self.state = state or TwinState()
        if layout is not None:
            self.add_missing_hubs(layout)

    def add_missing_hubs(self, layout: Layout) -> None:
        """Adds the hubs that are not there yet. Those that are keep the layout they have."""
        for name, hub in layout.hubs.items():
            if name not in self.state.hubs:
                self.state.change("hub", name, msgspec.to_builtins(hub))

    def call(self, verb: str, args: Mapping[str, Any], now: float) -> TwinReply:
        """Carries out one verb at that time. Faults in force may delay, fail or fake it."""
        self.state.finish_removals(now)
        try:
            if verb in CONTROL_VERBS:
                return TwinReply(
                    _check_arguments(CONTROL_VERBS[verb], verb, args)(self.state, now, **args)
                )
            return self._call_service(verb, dict(args), now)
        except BoatyardError as error:
            return TwinReply(error=error)

    def take_changes(self) -> list[tuple[Any, ...]]:
        """Returns the entries that are not in the journal yet, and forgets them."""
        changes = self.state.changes
        self.state.changes = []
        return changes

    def _call_service(self, verb: str, args: dict[str, Any], now: float) -> TwinReply:
        signature = VERBS.get(verb)
        if signature is None:
            raise Refused(f"the twin has no verb {verb!r}")
        name = args.pop("hub", "")
        hub = self.state.hubs.get(name)
        if hub is None:
            raise Refused(f"the twin has no hub {name!r}; it has {', '.join(self.state.hubs)}")
        run = _check_arguments(signature, verb, args)
        context = VerbContext(self.state, hub, now)
        fault = find_fault(self.state.faults, name, verb) if self.state.faults else None
        if fault is None:
            return TwinReply(run(context, **args))
        fault.calls += 1
        return _apply_fault(fault, verb, signature, lambda: run(context, **args))


def _apply_fault(
    fault: TwinFault, verb: str, signature: VerbSignature, run: Callable[[], Any]
) -> TwinReply:
    failed = Unavailable(f"the simulated {verb.partition('.')[0]} service does not answer")
    match fault.profile:
        case "slow":
            return _run_to_reply(run)._replace(delay=fault.seconds)
        case "dead":
            return TwinReply(error=failed, silent=fault.silent)
        case "flaky" if fault.calls % fault.every == 0:
            # Half of the failures come after the work was done: the caller cannot know which half.
            if fault.calls // fault.every % 2 == 0:
                _run_to_reply(run)
            return TwinReply(error=failed)
        case "lies" if signature.can_lie:
            return TwinReply(Done())
    return TwinReply(run())


def _run_to_reply(run: Callable[[], Any]) -> TwinReply:
    try:
        return TwinReply(run())
    except BoatyardError as error:
        return TwinReply(error=error)


def _check_arguments(
    signature: VerbSignature, verb: str, args: Mapping[str, Any]
) -> Callable[..., Any]:
    missing = signature.required - args.keys()
    if missing:
        raise Refused(f"{verb} needs {', '.join(sorted(missing))}")
    types = signature.types
    for name, value in args.items():
        if name not in types or not isinstance(value, types[name]):
            raise Refused(f"{verb} does not take {name}={value!r}")
    return signature.run
