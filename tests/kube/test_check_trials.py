"""Questions that must act to know: they find what does not work, and leave nothing of themselves."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from boatyard.kube.client import KubeClient
from boatyard.kube.kinds import JOBS, NODES, PODS, RESOURCE_QUOTAS, KubeKind
from boatyard.model.errors import Refused
from boatyard.model.outcome import Done
from tests.kube.checking import (
    SLOTS,
    ask,
    ask_until,
    ask_until_done,
    nothing_left,
    reason,
    subject_of,
    things_left,
    until,
)
from tests.support.control_plane import ControlPlane
from tests.support.kube_hub.running_pods import pods_running

POLICIES = KubeKind(
    "admissionregistration.k8s.io",
    "v1",
    "validatingadmissionpolicies",
    "ValidatingAdmissionPolicy",
    False,
)
BINDINGS = replace(
    POLICIES,
    plural="validatingadmissionpolicybindings",
    kind="ValidatingAdmissionPolicyBinding",
)


# --- components -------------------------------------------------------------------------------


async def test_a_silent_controller_manager_is_found(
    whole: ControlPlane, admin: KubeClient, leaves_nothing: None
) -> None:
    with whole.without("kube-controller-manager"):
        await ask_until("components", subject_of(whole), "ControllerManagerSilent")
    await ask_until_done("components", subject_of(whole))


async def test_a_silent_scheduler_is_found(
    whole: ControlPlane, admin: KubeClient, leaves_nothing: None
) -> None:
    with whole.without("kube-scheduler"):
        await ask_until("components", subject_of(whole), "SchedulerSilent")
    await ask_until_done("components", subject_of(whole))


async def test_a_store_that_is_away_is_found(whole: ControlPlane) -> None:
    await ask_until_done("components", subject_of(whole))
    with whole.without("etcd"):
        await ask_until("components", subject_of(whole), "EtcdNotHealthy")


async def test_components_are_proved_without_any_node(
    whole: ControlPlane, admin: KubeClient, leaves_nothing: None
) -> None:
    assert (await admin.list(NODES)).items == []
    await ask_until_done("components", subject_of(whole))


# --- workload ---------------------------------------------------------------------------------


async def test_a_workload_without_a_node_is_found(
    whole: ControlPlane, admin: KubeClient, leaves_nothing: None
) -> None:
    assert (await admin.list(NODES)).items == []
    await ask_until("workload", subject_of(whole), "WorkloadNotScheduled")
    async with pods_running(admin, SLOTS):
        await ask_until_done("workload", subject_of(whole))


@pytest.mark.parametrize(
    "how, said",
    [
        pytest.param("image", "WorkloadImage", id="never gets ready"),
        pytest.param("fail", "WorkloadFails", id="fails"),
    ],
)
async def test_a_workload_that_does_not_run_is_found(
    whole: ControlPlane, admin: KubeClient, leaves_nothing: None, how: str, said: str
) -> None:
    async with pods_running(admin, SLOTS, how=how):
        await ask_until("workload", subject_of(whole), said)
        await ask_until("workload", subject_of(whole), said)
    async with pods_running(admin, SLOTS):
        await remove_trial(admin)
        await ask_until_done("workload", subject_of(whole))


async def test_a_workload_that_ends_by_itself_has_run(
    whole: ControlPlane, admin: KubeClient, leaves_nothing: None
) -> None:
    async with pods_running(admin, SLOTS, how="succeed"):
        await ask_until_done("workload", subject_of(whole))


async def test_a_quota_that_refuses_the_workload_is_told(
    whole: ControlPlane, admin: KubeClient, leaves_nothing: None
) -> None:
    quota = {"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}}
    async with pods_running(admin, SLOTS):
        async with there_is(admin, RESOURCE_QUOTAS, quota):
            await until(lambda: quota_refuses(admin))
            outcome = await ask_until("workload", subject_of(whole), "WorkloadRefused")
            assert "exceeded quota" in outcome.why
            again = await ask_until("workload", subject_of(whole), "WorkloadRefused")
            assert again == outcome  # the same words while the cause is the same
        await ask_until_done("workload", subject_of(whole))


async def test_a_policy_that_refuses_the_workload_is_told(
    whole: ControlPlane, admin: KubeClient, leaves_nothing: None
) -> None:
    rule = {"apiGroups": ["batch"], "apiVersions": ["*"], "operations": ["CREATE"]}
    policy = {
        "matchConstraints": {"resourceRules": [{**rule, "resources": ["jobs"]}]},
        "validations": [{"expression": "false", "message": "not in this cluster"}],
    }
    binding = {"policyName": "no-jobs.example", "validationActions": ["Deny"]}
    about = {"metadata": {"name": "no-jobs.example"}}
    async with pods_running(admin, SLOTS):
        async with (
            there_is(admin, POLICIES, {**about, "spec": policy}),
            there_is(admin, BINDINGS, {**about, "spec": binding}),
        ):
            await until(lambda: policy_refuses(admin))
            outcome = await ask_until("workload", subject_of(whole), "WorkloadRefused")
            assert "not in this cluster" in outcome.why
        await ask_until_done("workload", subject_of(whole))


async def test_a_workload_nobody_asks_about_again_goes_by_itself(
    whole: ControlPlane, admin: KubeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("boatyard.checks.drivers.kube.check_job._TTL_SECONDS", 1)
    async with pods_running(admin, SLOTS, how="image"):
        await ask("workload", subject_of(whole), trial_seconds=0.5, trial_deadline=2)
        assert await things_left(admin) != []

        await until(lambda: nothing_left(admin))


async def test_a_job_of_somebody_else_is_not_touched(
    whole: ControlPlane, admin: KubeClient
) -> None:
    pod = {"restartPolicy": "Never", "containers": [{"name": "x", "image": "x"}]}
    job = {"metadata": {"name": "boatyard-check-workload"}, "spec": {"template": {"spec": pod}}}
    await admin.create(JOBS, job, "default")
    async with pods_running(admin, SLOTS):
        assert await reason("workload", subject_of(whole)) == "NameTaken"
        await admin.get(JOBS, "boatyard-check-workload", "default")
        await remove_trial(admin)


async def test_a_cluster_without_nodes_needs_no_workload(whole: ControlPlane) -> None:
    assert await ask("workload", replace(subject_of(whole), slots=())) == Done()


# --- small words ------------------------------------------------------------------------------


async def remove_trial(admin: KubeClient) -> None:
    """So that the next call begins anew."""
    await admin.delete(JOBS, "boatyard-check-workload", "default", propagation="Foreground")
    await until(lambda: nothing_left(admin))


@asynccontextmanager
async def there_is(admin: KubeClient, kind: KubeKind, body: dict[str, Any]) -> AsyncIterator[None]:
    """While inside."""
    await admin.create(kind, body, "default")
    try:
        yield
    finally:
        await admin.delete(kind, body["metadata"]["name"], "default")


async def quota_refuses(admin: KubeClient) -> bool:
    pod = {"metadata": {"name": "probe"}, "spec": {"containers": [{"name": "x", "image": "x"}]}}
    return await refuses(admin, PODS, pod)


async def policy_refuses(admin: KubeClient) -> bool:
    pod = {"restartPolicy": "Never", "containers": [{"name": "x", "image": "x"}]}
    job = {"suspend": True, "template": {"spec": pod}}
    return await refuses(admin, JOBS, {"metadata": {"name": "probe"}, "spec": job})


async def refuses(admin: KubeClient, kind: KubeKind, body: dict[str, Any]) -> bool:
    """Whether a rule just made is in force: the server takes a moment."""
    try:
        await admin.create(kind, body, "default")
    except Refused:
        return True
    await admin.delete(kind, "probe", "default", grace=0, propagation="Background")
    return False
