"""Gives every journey its environments, and looks after each whether the promises were kept."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from typing import Any

import pytest

from tests.support.control_plane import ControlPlane
from tests.support.kube_hub.api_server import hub_plane
from tests.support.simulated.environment import SimulatedEnvironment, open_environment
from tests.support.simulated.kube_environment import SimulatedKubeEnvironment, open_kube_environment
from tests.support.soak import SOAKING

NewEnvironment = Callable[..., Awaitable[SimulatedEnvironment]]
FORMS = (
    "embedded",
    "kube",
)  # where hubs keep their orders: in the ledger, or in a Kubernetes of their own


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "form_cases(names, cases, on_hub): like parametrize; on a Kubernetes hub only those cases, all in `make soak`",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Every journey in both forms; one that is about one of them says so: `@pytest.mark.forms("embedded")`.

    Cases that differ in what is done and not in where orders are kept run in full in the form `embedded`, which costs
    a fifth: `@pytest.mark.form_cases("step", STEPS, on_hub=["install"])`.
    """
    if "form" not in metafunc.fixturenames:
        return
    if by_form := metafunc.definition.get_closest_marker("form_cases"):
        names, cases = by_form.args
        metafunc.parametrize(f"form, {names}", list(_cases(cases, by_form.kwargs["on_hub"])))
        return
    said = metafunc.definition.get_closest_marker("forms")
    metafunc.parametrize("form", [_param(form) for form in (said.args if said else FORMS)])


def _cases(cases: Sequence[Any], on_hub: Sequence[Any]) -> Iterator[Any]:
    assert on_hub, "a case of each kind also runs on a Kubernetes hub"
    assert all(case in cases for case in on_hub), f"no such case: {on_hub}"
    for form in FORMS:
        for case in cases if form == "embedded" or SOAKING else on_hub:
            yield _param(form, *(case if isinstance(case, tuple) else (case,)))


def _param(form: str, *case: Any) -> Any:
    """With real requests a journey of an hour takes its time on a busy machine."""
    marks = [pytest.mark.timeout(400)] if form == "kube" else []
    return pytest.param(form, *case, marks=marks)


@pytest.fixture(scope="session")
def plane() -> Iterator[ControlPlane]:
    """One real API server for all journeys of a session; each has namespaces of its own."""
    with hub_plane() as plane:
        yield plane


@pytest.fixture
def form_of_environment(form: str, request: pytest.FixtureRequest) -> dict[str, Any]:
    if form == "embedded":
        return {}
    plane = request.getfixturevalue("plane")
    return {
        "kind": SimulatedKubeEnvironment,
        "opened": lambda environment: open_kube_environment(plane, environment),
    }


@pytest.fixture
async def new_environment(
    database_url: str, form_of_environment: dict[str, Any]
) -> AsyncIterator[NewEnvironment]:
    """Opens the test's environment: `await new_environment(delays="real")`."""
    async with AsyncExitStack() as stack:
        environments: list[SimulatedEnvironment] = []

        async def make(**how: Any) -> SimulatedEnvironment:
            opening = open_environment(database_url, **how, **form_of_environment)
            environments.append(await stack.enter_async_context(opening))
            return environments[0]

        yield make
        for environment in environments:
            await check_promises(environment)


@pytest.fixture
async def environment(new_environment: NewEnvironment) -> SimulatedEnvironment:
    """Two hubs of eight hosts; nothing takes any time."""
    return await new_environment()


async def check_promises(environment: SimulatedEnvironment) -> None:
    """Scarce things once, every order with a next action, no acknowledged write lost, nothing left unlisted."""
    breaches = await environment.breaches()
    assert breaches == [], "\n".join(str(breach) for breach in breaches)
