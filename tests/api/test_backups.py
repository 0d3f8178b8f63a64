"""Backups through both doors: who may, what strangers learn, what stays the provider's."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from boatyard.ledger.changes import Replace
from boatyard.model.generated.boatyard import Backup
from boatyard.model.generated.osac import ClusterRest, ClusterState
from tests.api.backups import BACKUPS, finished_backup, finished_cluster, progress, taken
from tests.api.doors import PRIVATE, ApiEnvironment, Door
from tests.api.roles import BY_KIND, CLUSTERS, As
from tests.api.watching import take, watching

pytestmark = pytest.mark.asyncio(loop_scope="module")


def a_backup(cluster: str, name: str = "copy", **spec: str) -> dict[str, object]:
    return {"metadata": {"name": name}, "spec": {"cluster": cluster, **spec}}


async def test_a_backup_from_request_to_end(
    environment: ApiEnvironment, member: As, door: Door
) -> None:
    cluster = await finished_cluster(environment)
    name = f"nightly-{door.name}"
    made = await member(BACKUPS, "Create", object=a_backup(cluster["metadata"]["name"], name))
    assert made["spec"] == {"cluster": cluster["id"]}, "a name is made an id"
    assert made["status"]["state"] == "BACKUP_STATE_PENDING"
    assert made["metadata"]["tenant"] == "acme"

    await taken(environment, made["id"])
    shown = await member(BACKUPS, "Get", id=made["id"])
    assert shown["status"]["state"] == "BACKUP_STATE_READY"
    assert (shown["status"]["bytes"], shown["status"]["version"]) == ("4096", "4.17.1")
    listed = await member(BACKUPS, "List", filter=f'this.metadata.name == "{name}"')
    assert [one["id"] for one in listed["items"]] == [made["id"]]

    await member(BACKUPS, "Delete", id=made["id"])
    await member(BACKUPS, "Delete", id=made["id"])
    leaving = await member(BACKUPS, "Get", id=made["id"])
    assert leaving["metadata"]["deletion_timestamp"], "it goes when the copy is gone"


async def test_where_it_is_is_the_providers(
    environment: ApiEnvironment, member: As, operator: As
) -> None:
    made = await finished_backup(environment, folder="/srv/copies")
    shown = await operator(BACKUPS, "Get", id=made["id"])
    assert shown["status"]["hub"] == "hub-1"
    assert shown["status"]["place"]
    assert shown["spec"]["folder"] == "/srv/copies"
    for answer in (
        await member(BACKUPS, "Get", id=made["id"]),
        (await member(BACKUPS, "List", filter=f'this.id == "{made["id"]}"'))["items"][0],
    ):
        assert not {"hub", "place", "cause"} & answer["status"].keys()
        assert "folder" not in answer["spec"]
        assert "finalizers" not in answer["metadata"]


@pytest.mark.parametrize(
    "asked",
    [
        {"filter": 'this.status.hub == "hub-1"'},
        {"filter": 'this.status.state == 2 && !(this.spec.folder == "/srv")'},
        {"filter": "has(this.status.place)"},
        {"order": "status.hub desc"},
        {"order": "metadata.name, this.spec.folder"},
    ],
)
async def test_what_is_not_shown_cannot_be_asked_about(
    member: As, operator: As, asked: dict[str, str]
) -> None:
    failed = await member.refused(BACKUPS, "List", **asked)
    assert (failed.code, "only operators" in failed.message) == ("INVALID_ARGUMENT", True)
    await operator(BACKUPS, "List", **asked)


async def test_a_folder_is_for_operators(
    environment: ApiEnvironment, member: As, operator: As, door: Door
) -> None:
    id = (await finished_cluster(environment))["id"]
    failed = await member.refused(BACKUPS, "Create", object=a_backup(id, folder="/srv"))
    assert set(failed.violations) == {"spec.folder"}
    for folder in ("srv", "/srv/../etc", "/srv\n"):
        failed = await operator.refused(BACKUPS, "Create", object=a_backup(id, folder=folder))
        assert set(failed.violations) == {"spec.folder"}
    made = await operator(
        BACKUPS, "Create", object=a_backup(id, f"kept-{door.name}", folder="/srv")
    )
    assert made["metadata"]["tenant"] == "acme", "it is whose the cluster is"


async def test_a_strangers_cluster_is_not_found(environment: ApiEnvironment, door: Door) -> None:
    cluster = await finished_cluster(environment)
    stranger = As(environment, door, "admin", "globex")
    answers = []
    for key in (cluster["id"], cluster["metadata"]["name"], "nobody"):
        failed = await stranger.refused(BACKUPS, "Create", object=a_backup(key))
        words = failed.violations["spec.cluster"].replace(key, "KEY")
        answers.append((failed.code, words))
    assert len(set(answers)) == 1
    assert "not found" in answers[0][1]


async def test_a_shared_cluster_is_not_shared_to_copy(
    environment: ApiEnvironment, member: As, operator: As, door: Door
) -> None:
    cluster = await finished_cluster(environment, "shared")
    failed = await member.refused(BACKUPS, "Create", object=a_backup(cluster["id"]))
    assert "not found" in failed.violations["spec.cluster"]
    made = await operator(BACKUPS, "Create", object=a_backup(cluster["id"], f"all-{door.name}"))
    assert (await member.refused(BACKUPS, "Get", id=made["id"])).code == "NOT_FOUND"


@pytest.mark.parametrize(
    "status, words",
    [
        ({"state": ClusterState.PROGRESSING, "api_url": ""}, "does not answer yet"),
        ({"rest": ClusterRest.FROZEN}, "resume it first"),
    ],
)
async def test_of_a_cluster_that_does_not_answer_there_is_none(
    environment: ApiEnvironment, member: As, status: dict[str, object], words: str
) -> None:
    cluster = await finished_cluster(environment)
    await progress(environment, cluster["id"], **status)
    failed = await member.refused(BACKUPS, "Create", object=a_backup(cluster["id"]))
    assert (failed.code, words in failed.message) == ("FAILED_PRECONDITION", True)


async def test_of_a_cluster_that_goes_there_is_none(
    environment: ApiEnvironment, member: As
) -> None:
    cluster = await finished_cluster(environment)
    await member(CLUSTERS, "Delete", id=cluster["id"])
    failed = await member.refused(BACKUPS, "Create", object=a_backup(cluster["id"]))
    assert failed.code == "FAILED_PRECONDITION"


async def test_what_the_service_writes_is_not_taken_from_callers(
    environment: ApiEnvironment, operator: As, member: As, door: Door
) -> None:
    cluster = await finished_cluster(environment)
    for who in (operator, member):
        body = a_backup(cluster["id"], f"forged-{door.name}-{who is member}".lower())
        body["status"] = {"state": "BACKUP_STATE_READY", "place": "/etc/shadow", "hub": "other"}
        made = await who(BACKUPS, "Create", object=body)
        stored = await environment.ledger.documents.get(Backup, made["id"])
        assert stored is not None
        assert (stored.status.state.name, stored.status.place) == ("PENDING", "")
        assert stored.status.hub == "hub-1"


async def test_a_backup_outlives_its_cluster(environment: ApiEnvironment, member: As) -> None:
    made = await finished_backup(environment)
    cluster = made["spec"]["cluster"]
    await member(CLUSTERS, "Delete", id=cluster)
    await As(environment, environment.grpc, "operator")(
        f"{PRIVATE}.Clusters",
        "Update",
        object={"id": cluster, "metadata": {"finalizers": []}},
        update_mask="metadata.finalizers",
    )
    assert (await member.refused(CLUSTERS, "Get", id=cluster)).code == "NOT_FOUND"
    shown = await member(BACKUPS, "Get", id=made["id"])
    assert shown["status"]["cluster_name"]


async def test_a_hub_that_keeps_backups_stays_and_says_which(
    environment: ApiEnvironment, operator: As
) -> None:
    hub = await operator(f"{PRIVATE}.Hubs", "Create", object=BY_KIND["Hub"].fresh())
    made = await finished_backup(environment)
    backup = await environment.ledger.documents.get(Backup, made["id"])
    assert backup is not None
    moved = replace(backup, status=replace(backup.status, hub=hub["id"]))
    await environment.ledger.commit([Replace(moved)], now=environment.ledger.clock.now())

    failed = await operator.refused(f"{PRIVATE}.Hubs", "Delete", id=hub["id"])

    assert failed.code == "FAILED_PRECONDITION"
    assert made["id"] in failed.message


async def test_the_same_name_again_is_taken(
    environment: ApiEnvironment, member: As, door: Door
) -> None:
    cluster = await finished_cluster(environment)
    body = a_backup(cluster["id"], f"once-{door.name}")
    await member(BACKUPS, "Create", object=body)
    assert (await member.refused(BACKUPS, "Create", object=body)).code == "ALREADY_EXISTS"


async def test_watches_go_on_over_backups(environment: ApiEnvironment, member: As) -> None:
    """They are no events of the contract, and those who watch everything are not cut by them."""
    for package, role in (("osac.public.v1", "member"), (PRIVATE, "operator")):
        watch = watching(environment, "grpc", token=environment.token(role), package=package)
        async with watch as stream:
            await finished_backup(environment)
            await member.cluster()
            kinds = {key for event in await take(stream, 3) for key in event}
            assert "cluster" in kinds
            assert "backup" not in kinds
