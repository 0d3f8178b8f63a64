"""The fake's control loop: watches objects, decides about what changed, and writes the decisions."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace

from boatyard.fakes.hypershift.acceptance import needs_inputs
from boatyard.fakes.hypershift.agents import decide_agent, is_free
from boatyard.fakes.hypershift.api_client import ApiError, ApiServerClient
from boatyard.fakes.hypershift.cache import ObjectCache
from boatyard.fakes.hypershift.credentials import read_token
from boatyard.fakes.hypershift.decision import decide_cluster
from boatyard.fakes.hypershift.faults import ControlFile, find_fault_problems
from boatyard.fakes.hypershift.kinds import (
    AGENTS,
    CLUSTERS,
    CONFIG_MAPS,
    MACHINES,
    NAMESPACES,
    POOLS,
    SECRETS,
    ObjectKind,
)
from boatyard.fakes.hypershift.names import (
    AGENT_MACHINE_NAMESPACE,
    CLUSTER_UID_LABEL,
    FAULT_ANNOTATION,
    HOSTED_LABEL,
    SUPPORTED_VERSIONS,
    SYSTEM_NAMESPACE,
    Object,
    control_plane_namespace,
    kubeconfig_secret,
)
from boatyard.fakes.hypershift.objects import (
    annotations_of,
    deleted_at,
    get_nested,
    labels_of,
    name_of,
    namespace_of,
    spec_of,
    uid_of,
)
from boatyard.fakes.hypershift.releases import make_supported_config_map, read_supported_versions
from boatyard.fakes.hypershift.snapshot import (
    FakeSettings,
    HostedClusterSnapshot,
    agent_namespace,
    input_secret_names,
)
from boatyard.fakes.hypershift.work_queue import DueQueue
from boatyard.fakes.hypershift.writes import (
    CreateObject,
    Decision,
    DeleteObject,
    PatchObject,
    UpdateStatus,
    Write,
    target_of,
    with_resource_version,
)

logger = logging.getLogger(__name__)

WORKER_COUNT = 8
FIRST_PAUSE_SECONDS = 0.05
LONGEST_PAUSE_SECONDS = 5.0

DecisionKey = tuple[str, str, str]
"""Identifies what a decision is about: ("cluster" | "agent" | "system", namespace, name)."""
SYSTEM_KEY: DecisionKey = ("system", SYSTEM_NAMESPACE, SUPPORTED_VERSIONS)


class FakeHyperShift:
    """Runs the fake on one API server. All its state is on the objects: it can be killed and started again."""

    def __init__(
        self, api: ApiServerClient, settings: FakeSettings, clock: Callable[[], float]
    ) -> None:
        self._api = api
        self._settings = settings
        self._clock = clock
        self._queue: DueQueue[DecisionKey] = DueQueue(clock)
        self._tries: dict[DecisionKey, int] = {}
        self._waiting_for_agents: set[DecisionKey] = (
            set()
        )  # clusters that would take a free agent; a hint, rebuilt after a start
        self._clusters_by_namespace: dict[str, DecisionKey] = {}
        self._awaited_agents: dict[
            str, str
        ] = {}  # agents that deleted machines wait for: name to home
        self._reported_faults: set[tuple[str, str]] = set()
        self.clusters = ObjectCache(CLUSTERS, self._on_cluster)
        self.pools = ObjectCache(POOLS, self._on_pool)
        self.machines = ObjectCache(MACHINES, self._on_machine)
        self.agents = ObjectCache(AGENTS, self._on_agent)
        self.namespaces = ObjectCache(
            NAMESPACES, self._on_namespace, {"labelSelector": HOSTED_LABEL}
        )
        self.secrets = ObjectCache(SECRETS, self._on_secret, {"labelSelector": CLUSTER_UID_LABEL})
        self.config = ObjectCache(
            CONFIG_MAPS,
            self._on_config,
            {
                "fieldSelector": f"metadata.name={SUPPORTED_VERSIONS},metadata.namespace={SYSTEM_NAMESPACE}"
            },
        )
        self._caches = {
            copy.kind: copy
            for copy in (
                *(self.clusters, self.pools, self.machines, self.agents),
                *(self.namespaces, self.secrets, self.config),
            )
        }

    async def run(self, on_ready: Callable[[], None]) -> None:
        async with asyncio.TaskGroup() as tasks:
            for copy in self._caches.values():
                tasks.create_task(copy.run(self._api), name=f"watch {copy.kind.name}")
            for copy in self._caches.values():
                await copy.listed.wait()
            self._queue.add(SYSTEM_KEY)
            for number in range(WORKER_COUNT):
                tasks.create_task(self._run_worker(), name=f"worker {number}")
            on_ready()

    def use_control_file(self, control: ControlFile) -> None:
        """Uses these faults from now on, and decides about everything again."""
        self._settings = replace(self._settings, control=control)
        for cluster in self.clusters.list_all():
            self._on_cluster(cluster)
        for agent in self.agents.list_all():
            self._queue.add(("agent", namespace_of(agent), name_of(agent)))

    def find_hosted_cluster(
        self, namespace: str, name: str
    ) -> tuple[Object, str, list[Object]] | None:
        """A cluster, the token of its kubeconfig and its machines, for the server of hosted APIs. None if unknown."""
        cluster = self.clusters.get(namespace, name)
        secret = self.secrets.get(namespace, kubeconfig_secret(name))
        if (
            cluster is None
            or secret is None
            or labels_of(secret)[CLUSTER_UID_LABEL] != uid_of(cluster)
        ):
            return None
        machines = self.machines.list_namespace(control_plane_namespace(namespace, name))
        return cluster, read_token(secret), machines

    # --- which keys a change concerns ---------------------------------------------------------

    def _on_cluster(self, cluster: Object) -> None:
        key = ("cluster", namespace_of(cluster), name_of(cluster))
        home = control_plane_namespace(namespace_of(cluster), name_of(cluster))
        if self.clusters.get(*key[1:]) is None:
            self._clusters_by_namespace.pop(home, None)
            self._waiting_for_agents.discard(key)
        else:
            self._clusters_by_namespace[home] = key
        self._log_fault_problems(CLUSTERS, cluster)
        self._queue.add(key)

    def _on_pool(self, pool: Object) -> None:
        self._log_fault_problems(POOLS, pool)
        cluster = str(spec_of(pool).get("clusterName") or "")
        self._queue.add(("cluster", namespace_of(pool), cluster))

    def _on_machine(self, machine: Object) -> None:
        self._log_fault_problems(MACHINES, machine)
        agent = str(spec_of(machine).get("providerID") or "").removeprefix("agent://")
        if self.machines.get(namespace_of(machine), name_of(machine)) is None:
            self._awaited_agents.pop(agent, None)
        elif deleted_at(machine) is not None:
            self._awaited_agents[agent] = namespace_of(machine)
        self._queue_cluster_of(namespace_of(machine))

    def _on_agent(self, agent: Object) -> None:
        self._log_fault_problems(AGENTS, agent)
        self._queue.add(("agent", namespace_of(agent), name_of(agent)))
        # The cluster it is bound to, and the one it was bound to, which waits until it is free.
        for home in (
            get_nested(agent, "spec", "clusterDeploymentName", "namespace"),
            annotations_of(agent).get(AGENT_MACHINE_NAMESPACE),
            self._awaited_agents.get(name_of(agent)),
        ):
            if home:
                self._queue_cluster_of(home)
        if is_free(agent):
            for key in self._waiting_for_agents:
                self._queue.add(key)

    def _on_namespace(self, namespace: Object) -> None:
        self._queue_cluster_of(name_of(namespace))

    def _on_secret(self, secret: Object) -> None:
        owners = secret["metadata"].get("ownerReferences") or []
        for owner in owners:
            if owner.get("kind") == CLUSTERS.name:
                self._queue.add(("cluster", namespace_of(secret), str(owner.get("name"))))

    def _on_config(self, _: Object) -> None:
        self._queue.add(SYSTEM_KEY)
        for cluster in self.clusters.list_all():
            self._on_cluster(cluster)

    def _queue_cluster_of(self, home: str) -> None:
        key = self._clusters_by_namespace.get(home)
        if key is not None:
            self._queue.add(key)

    def _log_fault_problems(self, kind: ObjectKind, thing: Object) -> None:
        fault_text = annotations_of(thing).get(FAULT_ANNOTATION)
        if not fault_text or (uid_of(thing), fault_text) in self._reported_faults:
            return
        self._reported_faults.add((uid_of(thing), fault_text))
        for complaint in find_fault_problems(kind.name, thing):
            log_fields = {"about": f"{kind.name} {name_of(thing)}", "why": complaint}
            logger.warning("planted fault not understood", extra=log_fields)

    # --- decisions and writes -----------------------------------------------------------------

    async def _run_worker(self) -> None:
        while True:
            key = await self._queue.take()
            try:
                await self._reconcile(key)
                self._tries.pop(key, None)
            except ApiError as error:
                self._retry_later(key, error)
            except Exception:  # one unexpected object must not end the work on all others
                logger.exception(
                    "decision failed with an internal error", extra={"about": "/".join(key)}
                )
                self._queue.add_at(key, self._clock() + LONGEST_PAUSE_SECONDS)
            finally:
                self._queue.finish(key)

    def _retry_later(self, key: DecisionKey, error: ApiError) -> None:
        """Retries soon, with backoff. A conflict is not logged: the watch brings the newer object."""
        tries = self._tries[key] = self._tries.get(key, 0) + 1
        pause = min(FIRST_PAUSE_SECONDS * 2 ** min(tries, 10), LONGEST_PAUSE_SECONDS)
        self._queue.add_at(key, self._clock() + max(pause, error.retry_after))
        if not error.is_conflict:
            log_fields = {"about": "/".join(key), "why": str(error), "tries": tries}
            logger.warning("write failed and will be retried", extra=log_fields)

    async def _reconcile(self, key: DecisionKey) -> None:
        key_type, namespace, name = key
        if key_type == "system":
            await self._ensure_system()
            return
        if key_type == "agent":
            agent = self.agents.get(namespace, name)
            if agent is None:
                return
            decision = decide_agent(agent, self._settings, self._clock())
        else:
            snapshot = await self._take_snapshot(namespace, name)
            decision = decide_cluster(snapshot, self._settings, self._clock())
            (
                self._waiting_for_agents.add
                if decision.wants_agents
                else self._waiting_for_agents.discard
            )(key)
        await self._carry_out(key, decision)

    async def _carry_out(self, key: DecisionKey, decision: Decision) -> None:
        for write in decision.writes:
            await self._write(write)
        if decision.writes:
            self._queue.add(key)  # decide about what follows from the writes
        elif decision.next_check is not None:
            self._queue.add_at(key, decision.next_check)

    async def _write(self, write: Write) -> None:
        kind, namespace, name = target_of(write)
        copy = self._caches[kind]
        try:
            match write:
                case CreateObject():
                    copy.put(await self._create(write))
                case PatchObject():
                    patch = with_resource_version(write.current, write.patch)
                    copy.put(await self._api.merge(kind, namespace, name, patch))
                case UpdateStatus():
                    copy.put(await self._api.apply_status(kind, write.current, write.status))
                case DeleteObject():
                    response = await self._api.delete(kind, namespace, name, write.uid)
                    if response.get("kind") == kind.name:
                        copy.put(response)
                    else:
                        copy.remove(write.current)
        except ApiError as error:
            if not error.is_not_found:
                raise
            if not isinstance(write, CreateObject):
                copy.remove(write.current)
                return
            raise
        logger.debug(
            "object written", extra={"how": type(write).__name__, "what": f"{kind.name} {name}"}
        )

    async def _create(self, write: CreateObject) -> Object:
        kind, namespace, name = target_of(write)
        try:
            return await self._api.create(kind, write.body)
        except ApiError as error:
            if not error.is_already_exists:
                raise
        if write.merge_if_exists is not None:
            return await self._api.merge(kind, namespace, name, write.merge_if_exists)
        return await self._api.get(kind, namespace, name)

    # --- snapshots ----------------------------------------------------------------------------

    async def _take_snapshot(self, namespace: str, name: str) -> HostedClusterSnapshot:
        cluster, home = self.clusters.get(namespace, name), control_plane_namespace(namespace, name)
        pools = [
            pool
            for pool in self.pools.list_namespace(namespace)
            if spec_of(pool).get("clusterName") == name
        ]
        if cluster is None and not pools:
            return HostedClusterSnapshot(None)
        # Requests first: while we wait for them, the copies change.
        home_namespace, input_keys = (
            await self._find_namespace(cluster, home),
            await self._read_input_keys(cluster),
        )
        return HostedClusterSnapshot(
            cluster=self.clusters.get(namespace, name),
            pools=tuple(pools),
            machines=tuple(self.machines.list_namespace(home)),
            agents=tuple(self._list_agents(cluster, home)),
            namespace=home_namespace,
            secrets={
                name_of(secret): secret
                for secret in self.secrets.list_namespace(namespace)
                if cluster is not None
                and labels_of(secret).get(CLUSTER_UID_LABEL) == uid_of(cluster)
            },
            input_keys=input_keys,
            supported=read_supported_versions(
                self.config.get(SYSTEM_NAMESPACE, SUPPORTED_VERSIONS)
            ),
        )

    def _list_agents(self, cluster: Object | None, home: str) -> list[Object]:
        namespace = agent_namespace(cluster) if cluster is not None else ""
        if namespace:
            return self.agents.list_namespace(namespace)
        # These pools have outlived their cluster: no spec names the namespace of its agents any more.
        return [
            agent
            for agent in self.agents.list_all()
            if annotations_of(agent).get(AGENT_MACHINE_NAMESPACE) == home
        ]

    async def _find_namespace(self, cluster: Object | None, home: str) -> Object | None:
        namespace = self.namespaces.get("", home)
        if namespace is not None or cluster is None or deleted_at(cluster) is None:
            return namespace
        # Ask the API server before the cluster is deleted: a namespace without our label is in no copy, yet exists.
        try:
            return await self._api.get(NAMESPACES, "", home)
        except ApiError as error:
            if error.is_not_found:
                return None
            raise

    async def _read_input_keys(self, cluster: Object | None) -> dict[str, frozenset[str] | None]:
        """The keys of the Secrets in the spec. They are not watched: the fake must not read all Secrets of a hub."""
        if cluster is None or deleted_at(cluster) is not None or not needs_inputs(cluster):
            return {}
        keys_by_secret: dict[str, frozenset[str] | None] = {}
        for name in input_secret_names(cluster):
            try:
                secret = await self._api.get(SECRETS, namespace_of(cluster), name)
                keys_by_secret[name] = frozenset(secret.get("data") or {})
            except ApiError as error:
                if not error.is_not_found:
                    raise
                keys_by_secret[name] = None
        return keys_by_secret

    async def _ensure_system(self) -> None:
        """Creates what an installed HyperShift has: its namespace and the versions it supports."""
        if self.config.get(SYSTEM_NAMESPACE, SUPPORTED_VERSIONS) is not None:
            return
        namespace = {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": SYSTEM_NAMESPACE},
        }
        try:
            await self._api.create(NAMESPACES, namespace)
        except ApiError as error:
            if not error.is_already_exists:
                raise
        await self._write(CreateObject(CONFIG_MAPS, make_supported_config_map()))
