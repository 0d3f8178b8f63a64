"""What the playbooks promise one by one: tenants' text is data, words of failure, late events, one at a time."""

from __future__ import annotations

import asyncio
import itertools
import json
import secrets
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from boatyard.automation.drivers.eda.driver import EdaAutomation
from boatyard.automation.drivers.eda.settings import read_settings
from boatyard.automation.drivers.eda.webhook import WebhookSender, build_event
from boatyard.automation.external_runs import StoredExternalRun
from boatyard.automation.port import RUN_FAILED, RunSpec
from boatyard.kube.kinds import LEASES, NAMESPACES, SECRETS
from boatyard.model import hub_names
from boatyard.model.errors import NotFound, Refused, Unavailable
from boatyard.platforms.drivers.hosted.kinds import HOSTED_CLUSTERS
from tests.support.kube_hub import hosted_values
from tests.support.kube_hub.eda_environment import EdaEnvironment, until, until_done
from tests.support.kube_hub.eda_listener import report
from tests.support.kube_hub.rulebook import Rulebook, needs_rulebook

pytestmark = pytest.mark.timeout(400)
CREATE = "create-hosted-cluster"


class PlaybookRunner:
    """Asks for runs of one cluster as the platform would, with manifests of the test's own."""

    def __init__(self, environment: EdaEnvironment, order: dict[str, Any]) -> None:
        self.environment = environment
        self.order = order
        self.key = f"{environment.key}/run"
        self.automation = EdaAutomation(
            environment.client,
            environment.settings,
            environment.place.hub,
            namespace=environment.system,
            now=lambda: datetime.now(UTC),
            new_secret=lambda: secrets.token_hex(32),
        )

    def wanted(self, attempt: int = 1, **annotations: str) -> RunSpec:
        cluster = hosted_values.cluster("KubeVirt")
        about = {"name": self.environment.order, "namespace": self.environment.namespace}
        cluster["metadata"] |= {**about, "annotations": annotations}
        whole = {"apiVersion": HOSTED_CLUSTERS.api_version, "kind": "HostedCluster", **cluster}
        return RunSpec(CREATE, "", attempt=attempt, order=self.order, values={"manifests": [whole]})

    async def ensure(self, wanted: RunSpec) -> Any:
        return await self.automation.ensure_run(self.key, wanted)

    async def kept(self) -> StoredExternalRun:
        found = await self.environment.runs.get(self.key)
        assert found is not None
        return found

    async def post(self, kept: StoredExternalRun, wanted: RunSpec) -> None:
        """The event of a run, once more."""
        settings = read_settings(self.environment.settings)
        sender = WebhookSender(self.environment.client, self.environment.system, settings)
        body = build_event(kept.run, wanted, secret=kept.secret, callback_url=settings.callback_url)
        await sender.post_event(wanted.action, body)

    async def annotation(self) -> str:
        found = await self.environment.client.get(
            HOSTED_CLUSTERS, self.environment.order, self.environment.namespace
        )
        return str(found["metadata"]["annotations"].get("said", ""))


@pytest.fixture
async def runner(environment: EdaEnvironment) -> PlaybookRunner:
    await environment.client.create(NAMESPACES, {"metadata": {"name": environment.namespace}})
    await environment.put_order()
    return PlaybookRunner(environment, await environment.order_object())


async def test_what_a_tenant_writes_is_data(
    runner: PlaybookRunner, book: Rulebook, tmp_path: Path
) -> None:
    marker = tmp_path / "run-by-a-tenant"
    text = "{{ lookup('pipe', 'touch " + str(marker) + "') }}"
    runner.order["spec"]["templateParameters"] = json.dumps({"motd": text})
    runner.order["metadata"]["annotations"]["text"] = text

    wanted = runner.wanted(said=text)
    await until_done(lambda: runner.ensure(wanted), book.said)

    assert await runner.annotation() == text
    assert not marker.exists()


def test_the_same_text_taken_from_the_payload_would_be_run(tmp_path: Path) -> None:
    """Why the playbooks read the encoded part only. Should this fail, they may be made simpler."""
    marker, playbook, given = (tmp_path / name for name in ("marker", "play.yml", "given.json"))
    text = "{{ lookup('pipe', 'touch " + str(marker) + "') }}"
    given.write_text(json.dumps({"ansible_eda": {"event": {"payload": {"motd": text}}}}))
    task = {"debug": {"msg": "{{ ansible_eda.event.payload.motd }}"}}
    play = {"hosts": "localhost", "connection": "local", "gather_facts": False, "tasks": [task]}
    playbook.write_text(json.dumps([play]))
    words = [str(needs_rulebook() / "ansible-playbook"), str(playbook), "-e", f"@{given}"]
    subprocess.run(words, check=True, capture_output=True, timeout=120)
    assert marker.exists()


async def test_a_failed_run_is_told_in_the_words_of_its_task(
    runner: PlaybookRunner, book: Rulebook
) -> None:
    wanted = runner.wanted()
    wanted.values["manifests"][0]["spec"]["noSuchField"] = True  # type: ignore[index]
    with pytest.raises(Refused) as caught:
        await until_done(lambda: runner.ensure(wanted), book.said)
    assert caught.value.reason == RUN_FAILED
    assert "Create or update the HostedCluster" in str(caught.value)
    assert "noSuchField" in str(caught.value)
    with pytest.raises(NotFound):
        await runner.annotation()
    await until(runner.environment.is_unlocked, book.said)


async def test_an_event_that_comes_late_undoes_nothing(
    runner: PlaybookRunner, book: Rulebook
) -> None:
    first, second = runner.wanted(1, said="first"), runner.wanted(2, said="second")
    await until_done(lambda: runner.ensure(first), book.said)
    late = await runner.kept()
    await until_done(lambda: runner.ensure(second), book.said)
    assert await runner.annotation() == "second"

    heard = book.said().count("is not wanted any more")
    await runner.post(late, first)

    async def was_turned_away() -> bool:
        return book.said().count("is not wanted any more") > heard

    await until(was_turned_away, book.said)
    assert await runner.annotation() == "second"
    assert (await runner.kept()).run.attempt == 2


async def test_a_result_told_again_changes_nothing(runner: PlaybookRunner, book: Rulebook) -> None:
    wanted = runner.wanted(said="once")
    done = await until_done(lambda: runner.ensure(wanted), book.said)
    kept = await runner.kept()
    url = f"{runner.environment.settings['eda.callback-url']}/automation/runs/{kept.run.id}"
    for body in ({"result": "succeeded"}, {"result": "failed", "message": "no"}):
        status, said = await report({"url": url, "secret": kept.secret}, body)
        assert (status, said["result"]["facts"]) == (200, done.facts)

    # Nor does the event itself, once there is a result.
    await runner.environment.client.delete(
        HOSTED_CLUSTERS, runner.environment.order, runner.environment.namespace
    )
    heard = book.said().count("is not wanted any more")
    await runner.post(kept, wanted)

    async def was_turned_away() -> bool:
        return book.said().count("is not wanted any more") > heard

    await until(was_turned_away, book.said)
    assert await runner.kept() == kept


async def test_a_lock_that_is_kept_by_another_puts_the_event_off(
    runner: PlaybookRunner, book: Rulebook
) -> None:
    """Somebody who renews his lock works; the run is not failed for that, and comes again until it is free."""
    name = f"cluster-{runner.environment.order}-lock"
    namespace = runner.environment.place.shared_namespace
    await runner.environment.client.create(LEASES, {"metadata": {"name": name}}, namespace)
    wanted = runner.wanted(said="in the end")

    async def renew() -> None:
        for number in itertools.count():
            patch = {"metadata": {"annotations": {"renewed": str(number)}}}
            await runner.environment.client.merge_patch(LEASES, name, patch, namespace)
            await asyncio.sleep(0.5)

    async def was_put_off() -> bool:
        await runner.ensure(wanted)
        return any("Take it again" in line.text for line in (await runner.kept()).run.story)

    async with asyncio.TaskGroup() as tasks:
        renewing = tasks.create_task(renew())
        await until(was_put_off, book.said)
        renewing.cancel()
    assert not (await runner.kept()).run.is_over
    await runner.environment.client.delete(LEASES, name, namespace)
    await until_done(lambda: runner.ensure(wanted), book.said)
    assert await runner.annotation() == "in the end"


async def test_an_event_that_comes_twice_works_once_after_the_other(
    runner: PlaybookRunner, book: Rulebook
) -> None:
    wanted = runner.wanted(said="once")
    await runner.ensure(wanted)
    await runner.post(await runner.kept(), wanted)
    await until_done(lambda: runner.ensure(wanted), book.said)
    await until(runner.environment.is_unlocked, book.said)
    ends = [one for one in await runner.automation.events(runner.key) if one.kind == "end"]
    assert len(ends) == 1


async def test_a_lock_whose_holder_is_gone_is_broken(
    runner: PlaybookRunner, book: Rulebook
) -> None:
    body = {"metadata": {"name": f"cluster-{runner.environment.order}-lock"}}
    await runner.environment.client.create(LEASES, body, runner.environment.place.shared_namespace)
    wanted = runner.wanted(said="after it")
    await until_done(lambda: runner.ensure(wanted), book.said)
    assert await runner.annotation() == "after it"
    await until(runner.environment.is_unlocked, book.said)


async def test_an_order_that_is_going_is_not_built(runner: PlaybookRunner, book: Rulebook) -> None:
    runner.order["metadata"]["uid"] = "00000000-0000-0000-0000-000000000000"
    with pytest.raises(Refused) as caught:
        await until_done(lambda: runner.ensure(runner.wanted()), book.said)
    assert "The order is being deleted" in str(caught.value)
    finalizers = (await runner.environment.order_object())["metadata"]["finalizers"]
    assert hub_names.AUTOMATION_FINALIZER not in finalizers


async def test_whoever_has_another_token_is_not_heard(runner: PlaybookRunner) -> None:
    patch = {"stringData": {"token": "another"}}
    await runner.environment.client.merge_patch(
        SECRETS, "eda-webhook", patch, runner.environment.system
    )
    with pytest.raises(Unavailable) as caught:
        await runner.ensure(runner.wanted())
    assert caught.value.reason == "AutomationRefuses"
    assert (await runner.kept()).run.state == "recorded"
