"""Create, get, list, update and delete: the same promises for every kind, over both doors."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from boatyard.model.generated.osac import Project
from tests.api import samples
from tests.api.doors import PRIVATE, PUBLIC, ApiEnvironment, Door, Failed
from tests.api.roles import BY_KIND
from tests.api.samples import PACKAGES, Sample

pytestmark = pytest.mark.asyncio(loop_scope="module")

CASES = [
    pytest.param(package, sample, id=f"{kind}-{package.split('.')[1]}")
    for (kind, package), sample in PACKAGES.items()
]


class Kind:
    """One kind through one door, as an operator."""

    def __init__(
        self, environment: ApiEnvironment, door: Door, package: str, sample: Sample
    ) -> None:
        self._door = door
        self._service = f"{package}.{sample.service}"
        self._token = environment.token("operator")
        self.sample = sample
        self.object = sample.fresh(package)

    async def __call__(self, rpc: str, **body: Any) -> Any:
        return await self._door.call(self._service, rpc, body, token=self._token)

    async def create(self) -> Any:
        return await self("Create", object=copy.deepcopy(self.object))


@pytest.fixture
def kind(environment: ApiEnvironment, door: Door, package: str, sample: Sample) -> Kind:
    return Kind(environment, door, package, sample)


@pytest.mark.parametrize("package, sample", CASES)
async def test_what_is_created_can_be_read(kind: Kind) -> None:
    made = await kind.create()
    assert made["id"]
    assert made["metadata"]["name"] == kind.object["metadata"]["name"]
    assert made["metadata"]["creation_timestamp"]
    assert made["metadata"]["creator"] == "operator-of-acme"
    assert "version" not in made["metadata"]
    assert await kind("Get", id=made["id"]) == made
    listed = await kind("List", filter=f'this.id == "{made["id"]}"')
    assert listed == {"size": 1, "total": 1, "items": [made]}


@pytest.mark.parametrize("package, sample", CASES)
async def test_a_second_of_the_same_name_is_refused(kind: Kind) -> None:
    await kind.create()
    with pytest.raises(Failed) as failed:
        await kind.create()
    assert failed.value.code == "ALREADY_EXISTS"


@pytest.mark.parametrize("package, sample", CASES)
async def test_a_mask_changes_what_it_names_and_nothing_else(kind: Kind) -> None:
    made, change = await kind.create(), kind.sample.fresh_change()
    changed = await kind(
        "Update",
        object={"id": made["id"], **change},
        update_mask=kind.sample.mask,
    )
    assert changed["metadata"]["version"] == 1
    assert changed["metadata"]["generation"] == "2"
    assert _without(changed, kind.sample.mask) == _without(made, kind.sample.mask)
    assert _at(changed, kind.sample.mask) == _at(change, kind.sample.mask)
    assert await kind("Get", id=made["id"]) == changed


@pytest.mark.parametrize("package, sample", CASES)
async def test_what_was_read_and_written_back_changes_nothing(
    kind: Kind, environment: ApiEnvironment
) -> None:
    made = await kind.create()
    before = await _events(environment)
    assert await kind("Update", object=made) == made
    assert await _events(environment) == before, "nothing happened, so no event"


@pytest.mark.parametrize("package, sample", CASES)
async def test_a_lock_refuses_a_version_that_is_not_the_stored_one(kind: Kind) -> None:
    made = await kind.create()
    stale = copy.deepcopy(made)
    stale["metadata"]["labels"] = {"a": "b"}
    await kind("Update", object=stale, lock=True)
    stale["metadata"]["labels"] = {"a": "c"}
    with pytest.raises(Failed) as failed:
        await kind("Update", object=stale, lock=True)
    assert failed.value.code == "ABORTED"


@pytest.mark.parametrize("package, sample", CASES)
async def test_labels_and_annotations_that_are_left_out_are_gone(kind: Kind) -> None:
    made = await kind.create()
    made["metadata"] |= {"labels": {"a": "1", "b": "2"}, "annotations": {"c": "3"}}
    tagged = await kind("Update", object=made)
    assert tagged["metadata"]["labels"] == {"a": "1", "b": "2"}
    tagged["metadata"]["labels"] = {"b": "2"}
    tagged["metadata"]["annotations"] = {}
    untagged = await kind("Update", object=tagged, update_mask="metadata")
    assert untagged["metadata"]["labels"] == {"b": "2"}
    assert "annotations" not in untagged["metadata"]


@pytest.mark.parametrize("package, sample", CASES)
async def test_words_for_people_are_kept(kind: Kind) -> None:
    body = copy.deepcopy(kind.object)
    body["metadata"] = {**body["metadata"], "display_name": "Étoile", "description": "for tests"}
    made = await kind("Create", object=body)
    assert made["metadata"]["display_name"] == "Étoile"
    assert made["metadata"]["description"] == "for tests"


@pytest.mark.parametrize("package, sample", CASES)
async def test_what_is_deleted_is_gone_or_says_so(kind: Kind) -> None:
    made = await kind.create()
    assert await kind("Delete", id=made["id"]) == {}
    if kind.sample.kind == "Cluster":
        first = await kind("Get", id=made["id"])
        assert await kind("Delete", id=made["id"]) == {}
        again = await kind("Get", id=made["id"])
        assert first["metadata"]["deletion_timestamp"] == again["metadata"]["deletion_timestamp"]
        assert again["status"]["state"] == "CLUSTER_STATE_DELETING"
        return
    for rpc in ("Get", "Delete"):
        with pytest.raises(Failed) as failed:
            await kind(rpc, id=made["id"])
        assert failed.value.code == "NOT_FOUND"


@pytest.mark.parametrize("package, sample", CASES)
async def test_a_dry_run_stores_nothing(
    kind: Kind, environment: ApiEnvironment, door: Door, package: str
) -> None:
    service = f"{package}.{kind.sample.service}"
    before = await _events(environment)
    shown = await door.call(
        service,
        "Create",
        {"object": kind.object},
        token=environment.token("operator"),
        x_dry_run="true",
    )
    assert "id" not in shown
    assert shown["metadata"]["name"] == kind.object["metadata"]["name"]
    assert await _events(environment) == before
    assert (await kind.create())["id"]


async def test_a_tenants_dry_run_stores_nothing(environment: ApiEnvironment, door: Door) -> None:
    service, token = f"{PUBLIC}.Clusters", environment.token("member")
    body = samples.cluster(f"dry-{door.name}")
    before = await _events(environment)
    shown = await door.call(service, "Create", {"object": body}, token=token, x_dry_run="true")
    assert "id" not in shown
    assert await _events(environment) == before
    assert (await door.call(service, "Create", {"object": body}, token=token))["id"]


async def test_a_status_is_taken_in_the_private_package_only(
    environment: ApiEnvironment, door: Door
) -> None:
    """Also from operators: what package a call is made in says who owns the status."""
    sample = BY_KIND["Project"]
    for package, message in ((PUBLIC, None), (PRIVATE, "from the caller")):
        body = {**sample.fresh(), "status": {"message": "from the caller"}}
        made = await Kind(environment, door, package, sample)("Create", object=body)
        stored = await environment.ledger.documents.get(Project, made["id"])
        assert stored is not None
        assert stored.status.message == message, package


@pytest.mark.parametrize("rpc", ["Get", "Delete", "Update"])
async def test_an_id_is_needed_and_an_unknown_one_is_not_found(
    environment: ApiEnvironment, door: Door, rpc: str
) -> None:
    def body(id: str) -> dict[str, Any]:
        return {"object": {"id": id}} if rpc == "Update" else {"id": id}

    for (name, package), sample in PACKAGES.items():
        kind = Kind(environment, door, package, sample)
        with pytest.raises(Failed) as failed:
            await kind(rpc, **body("no-such-thing"))
        assert failed.value.code == "NOT_FOUND", f"{package} {name}"
        if door.name == "grpc":
            with pytest.raises(Failed) as failed:
                await kind(rpc, **body(""))
            assert failed.value.code == "INVALID_ARGUMENT", f"{package} {name}"
            assert failed.value.violations == {"id": "is required"}, f"{package} {name}"


async def test_every_kind_in_the_table_has_a_sample() -> None:
    from boatyard.api.kinds import WRITABLE_KINDS

    assert {kind.name for kind in WRITABLE_KINDS} == {sample.kind for sample in PACKAGES.values()}


async def _events(environment: ApiEnvironment) -> int:
    await environment.ledger.events.publish()
    return await environment.ledger.events.last_seq()


def _at(value: Any, path: str) -> Any:
    for name in path.split("."):
        value = value[name]
    return value


def _without(value: Any, path: str) -> Any:
    value = copy.deepcopy(value)
    for name in ("version", "generation"):
        value["metadata"].pop(name, None)
    *parents, last = path.split(".")
    _at(value, ".".join(parents)).pop(last, None) if parents else value.pop(last, None)
    return value
