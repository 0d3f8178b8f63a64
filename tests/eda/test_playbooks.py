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
from boatyard.automation.drivers.eda.sending import Sender, event
from boatyard.automation.drivers.eda.settings import read_settings
from boatyard.automation.port import RUN_FAILED, RunWanted
from boatyard.automation.runs import Kept
from boatyard.kube.kinds import LEASES, NAMESPACES, SECRETS
from boatyard.model import hub_names
from boatyard.model.errors import NotFound, Refused, Unavailable
from boatyard.platforms.drivers.hosted.kinds import HOSTED_CLUSTERS
from tests.support import hosted_values
from tests.support.eda_listener import report
from tests.support.eda_site import EdaSite, until, until_done
from tests.support.rulebook import Rulebook, needs_rulebook

pytestmark = pytest.mark.timeout(400)
CREATE = "create-hosted-cluster"


class Desk:
    """Asks for runs of one cluster as the platform would, with manifests of the test's own."""

    def __init__(self, site: EdaSite, order: dict[str, Any]) -> None:
        self.site = site
        self.order = order
        self.key = f"{site.key}/run"
        self.automation = EdaAutomation(
            site.client,
            site.settings,
            site.place.hub,
            namespace=site.system,
            now=lambda: datetime.now(UTC),
            new_secret=lambda: secrets.token_hex(32),
        )

    def wanted(self, attempt: int = 1, **annotations: str) -> RunWanted:
        cluster = hosted_values.cluster("KubeVirt")
        about = {"name": self.site.order, "namespace": self.site.namespace}
        cluster["metadata"] |= {**about, "annotations": annotations}
        whole = {"apiVersion": HOSTED_CLUSTERS.api_version, "kind": "HostedCluster", **cluster}
        return RunWanted(
            CREATE, "", attempt=attempt, order=self.order, values={"manifests": [whole]}
        )

    async def ensure(self, wanted: RunWanted) -> Any:
        return await self.automation.ensure_run(self.key, wanted)

    async def kept(self) -> Kept:
        found = await self.site.runs.get(self.key)
        assert found is not None
        return found

    async def post(self, kept: Kept, wanted: RunWanted) -> None:
        """The event of a run, once more."""
        settings = read_settings(self.site.settings)
        sender = Sender(self.site.client, self.site.system, settings)
        body = event(kept.run, wanted, secret=kept.secret, callback_url=settings.callback_url)
        await sender.post(wanted.action, body)

    async def annotation(self) -> str:
        found = await self.site.client.get(HOSTED_CLUSTERS, self.site.order, self.site.namespace)
        return str(found["metadata"]["annotations"].get("said", ""))


@pytest.fixture
async def desk(site: EdaSite) -> Desk:
    await site.client.create(NAMESPACES, {"metadata": {"name": site.namespace}})
    await site.put_order()
    return Desk(site, await site.order_object())


async def test_what_a_tenant_writes_is_data(desk: Desk, book: Rulebook, tmp_path: Path) -> None:
    marker = tmp_path / "run-by-a-tenant"
    text = "{{ lookup('pipe', 'touch " + str(marker) + "') }}"
    desk.order["spec"]["templateParameters"] = json.dumps({"motd": text})
    desk.order["metadata"]["annotations"]["text"] = text

    wanted = desk.wanted(said=text)
    await until_done(lambda: desk.ensure(wanted), book.said)

    assert await desk.annotation() == text
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


async def test_a_failed_run_is_told_in_the_words_of_its_task(desk: Desk, book: Rulebook) -> None:
    wanted = desk.wanted()
    wanted.values["manifests"][0]["spec"]["noSuchField"] = True  # type: ignore[index]
    with pytest.raises(Refused) as caught:
        await until_done(lambda: desk.ensure(wanted), book.said)
    assert caught.value.reason == RUN_FAILED
    assert "Create or update the HostedCluster" in str(caught.value)
    assert "noSuchField" in str(caught.value)
    with pytest.raises(NotFound):
        await desk.annotation()
    await until(desk.site.is_unlocked, book.said)


async def test_an_event_that_comes_late_undoes_nothing(desk: Desk, book: Rulebook) -> None:
    first, second = desk.wanted(1, said="first"), desk.wanted(2, said="second")
    await until_done(lambda: desk.ensure(first), book.said)
    late = await desk.kept()
    await until_done(lambda: desk.ensure(second), book.said)
    assert await desk.annotation() == "second"

    heard = book.said().count("is not wanted any more")
    await desk.post(late, first)

    async def was_turned_away() -> bool:
        return book.said().count("is not wanted any more") > heard

    await until(was_turned_away, book.said)
    assert await desk.annotation() == "second"
    assert (await desk.kept()).run.attempt == 2


async def test_a_result_told_again_changes_nothing(desk: Desk, book: Rulebook) -> None:
    wanted = desk.wanted(said="once")
    done = await until_done(lambda: desk.ensure(wanted), book.said)
    kept = await desk.kept()
    url = f"{desk.site.settings['eda.callback-url']}/automation/runs/{kept.run.id}"
    for body in ({"result": "succeeded"}, {"result": "failed", "message": "no"}):
        status, said = await report({"url": url, "secret": kept.secret}, body)
        assert (status, said["result"]["facts"]) == (200, done.facts)

    # Nor does the event itself, once there is a result.
    await desk.site.client.delete(HOSTED_CLUSTERS, desk.site.order, desk.site.namespace)
    heard = book.said().count("is not wanted any more")
    await desk.post(kept, wanted)

    async def was_turned_away() -> bool:
        return book.said().count("is not wanted any more") > heard

    await until(was_turned_away, book.said)
    assert await desk.kept() == kept


async def test_a_lock_that_is_kept_by_another_puts_the_event_off(
    desk: Desk, book: Rulebook
) -> None:
    """Somebody who renews his lock works; the run is not failed for that, and comes again until it is free."""
    name = f"cluster-{desk.site.order}-lock"
    namespace = desk.site.place.one_namespace
    await desk.site.client.create(LEASES, {"metadata": {"name": name}}, namespace)
    wanted = desk.wanted(said="in the end")

    async def renew() -> None:
        for number in itertools.count():
            patch = {"metadata": {"annotations": {"renewed": str(number)}}}
            await desk.site.client.merge_patch(LEASES, name, patch, namespace)
            await asyncio.sleep(0.5)

    async def was_put_off() -> bool:
        await desk.ensure(wanted)
        return any("Take it again" in line.text for line in (await desk.kept()).run.story)

    async with asyncio.TaskGroup() as tasks:
        renewing = tasks.create_task(renew())
        await until(was_put_off, book.said)
        renewing.cancel()
    assert not (await desk.kept()).run.is_over
    await desk.site.client.delete(LEASES, name, namespace)
    await until_done(lambda: desk.ensure(wanted), book.said)
    assert await desk.annotation() == "in the end"


async def test_an_event_that_comes_twice_works_once_after_the_other(
    desk: Desk, book: Rulebook
) -> None:
    wanted = desk.wanted(said="once")
    await desk.ensure(wanted)
    await desk.post(await desk.kept(), wanted)
    await until_done(lambda: desk.ensure(wanted), book.said)
    await until(desk.site.is_unlocked, book.said)
    ends = [one for one in await desk.automation.events(desk.key) if one.kind == "end"]
    assert len(ends) == 1


async def test_a_lock_whose_holder_is_gone_is_broken(desk: Desk, book: Rulebook) -> None:
    body = {"metadata": {"name": f"cluster-{desk.site.order}-lock"}}
    await desk.site.client.create(LEASES, body, desk.site.place.one_namespace)
    wanted = desk.wanted(said="after it")
    await until_done(lambda: desk.ensure(wanted), book.said)
    assert await desk.annotation() == "after it"
    await until(desk.site.is_unlocked, book.said)


async def test_an_order_that_is_going_is_not_built(desk: Desk, book: Rulebook) -> None:
    desk.order["metadata"]["uid"] = "00000000-0000-0000-0000-000000000000"
    with pytest.raises(Refused) as caught:
        await until_done(lambda: desk.ensure(desk.wanted()), book.said)
    assert "The order is being deleted" in str(caught.value)
    finalizers = (await desk.site.order_object())["metadata"]["finalizers"]
    assert hub_names.AUTOMATION_FINALIZER not in finalizers


async def test_whoever_has_another_token_is_not_heard(desk: Desk) -> None:
    patch = {"stringData": {"token": "another"}}
    await desk.site.client.merge_patch(SECRETS, "eda-webhook", patch, desk.site.system)
    with pytest.raises(Unavailable) as caught:
        await desk.ensure(desk.wanted())
    assert caught.value.reason == "AutomationRefuses"
    assert (await desk.kept()).run.state == "recorded"
