"""The fake's control loop: watches objects, decides about what changed, and writes the decisions."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace

from boatyard.fakes.hypershift.acceptance import needs_inputs
from boatyard.fakes.hypershift.agents import is_free, play_agent
from boatyard.fakes.hypershift.api import Api, ApiError
from boatyard.fakes.hypershift.cache import Copy
from boatyard.fakes.hypershift.decide import decide
from boatyard.fakes.hypershift.faults import ControlFile, complaints
from boatyard.fakes.hypershift.kinds import (
    AGENTS,
    CLUSTERS,
    CONFIG_MAPS,
    MACHINES,
    NAMESPACES,
    POOLS,
    SECRETS,
    Kind,
)
from boatyard.fakes.hypershift.names import (
    AGENT_MACHINE_NAMESPACE,
    FAULT,
    HOSTED,
    PLAYED_FOR,
    SUPPORTED,
    SYSTEM,
    Object,
    control_plane_namespace,
    kubeconfig_secret,
)
from boatyard.fakes.hypershift.objects import (
    annotations_of,
    deleted_at,
    inside,
    labels_of,
    name_of,
    namespace_of,
    spec_of,
    uid_of,
)
from boatyard.fakes.hypershift.observation import (
    Manner,
    Seen,
    agent_namespace,
    inputs_to_look_at,
)
from boatyard.fakes.hypershift.published import token_of
from boatyard.fakes.hypershift.releases import supported_by, supported_config_map
from boatyard.fakes.hypershift.schedule import Agenda
from boatyard.fakes.hypershift.writes import (
    Change,
    Create,
    Decision,
    Remove,
    Report,
    Write,
    guarded,
    place_of,
)

logger = logging.getLogger(__name__)

WORKERS = 8
FIRST_PAUSE = 0.05
LONGEST_PAUSE = 5.0

Key = tuple[str, str, str]
"""Identifies what a decision is about: ("cluster" | "agent" | "system", namespace, name)."""
SYSTEM_KEY: Key = ("system", SYSTEM, SUPPORTED)


class Player:
    """Runs the fake on one API server. All its state is on the objects: it can be killed and started again."""

    def __init__(self, api: Api, settings: Manner, clock: Callable[[], float]) -> None:
        self._api = api
        self._manner = settings
        self._clock = clock
        self._agenda: Agenda[Key] = Agenda(clock)
        self._tries: dict[Key, int] = {}
        self._hungry: set[Key] = (
            set()
        )  # clusters that would take a free agent; a hint, rebuilt after a start
        self._homes: dict[str, Key] = {}
        self._awaited: dict[str, str] = {}  # agents that deleted machines wait for: name to home
        self._told: set[tuple[str, str]] = set()
        self.clusters = Copy(CLUSTERS, self._on_cluster)
        self.pools = Copy(POOLS, self._on_pool)
        self.machines = Copy(MACHINES, self._on_machine)
        self.agents = Copy(AGENTS, self._on_agent)
        self.namespaces = Copy(NAMESPACES, self._on_namespace, {"labelSelector": HOSTED})
        self.secrets = Copy(SECRETS, self._on_secret, {"labelSelector": PLAYED_FOR})
        self.config = Copy(
            CONFIG_MAPS,
            self._on_config,
            {"fieldSelector": f"metadata.name={SUPPORTED},metadata.namespace={SYSTEM}"},
        )
        self._copies = {
            copy.kind: copy
            for copy in (
                *(self.clusters, self.pools, self.machines, self.agents),
                *(self.namespaces, self.secrets, self.config),
            )
        }

    async def run(self, on_ready: Callable[[], None]) -> None:
        async with asyncio.TaskGroup() as tasks:
            for copy in self._copies.values():
                tasks.create_task(copy.run(self._api), name=f"watch {copy.kind.name}")
            for copy in self._copies.values():
                await copy.complete.wait()
            self._agenda.add(SYSTEM_KEY)
            for number in range(WORKERS):
                tasks.create_task(self._work(), name=f"worker {number}")
            on_ready()

    def follow(self, control: ControlFile) -> None:
        """Uses these faults from now on, and decides about everything again."""
        self._manner = replace(self._manner, control=control)
        for cluster in self.clusters.all():
            self._on_cluster(cluster)
        for agent in self.agents.all():
            self._agenda.add(("agent", namespace_of(agent), name_of(agent)))

    def hosted(self, namespace: str, name: str) -> tuple[Object, str, list[Object]] | None:
        """A cluster, the token of its kubeconfig and its machines, for the server of hosted APIs. None if unknown."""
        cluster = self.clusters.get(namespace, name)
        secret = self.secrets.get(namespace, kubeconfig_secret(name))
        if cluster is None or secret is None or labels_of(secret)[PLAYED_FOR] != uid_of(cluster):
            return None
        machines = self.machines.within(control_plane_namespace(namespace, name))
        return cluster, token_of(secret), machines

    # --- which keys a change concerns ---------------------------------------------------------

    def _on_cluster(self, cluster: Object) -> None:
        key = ("cluster", namespace_of(cluster), name_of(cluster))
        home = control_plane_namespace(namespace_of(cluster), name_of(cluster))
        if self.clusters.get(*key[1:]) is None:
            self._homes.pop(home, None)
            self._hungry.discard(key)
        else:
            self._homes[home] = key
        self._complain(CLUSTERS, cluster)
        self._agenda.add(key)

    def _on_pool(self, pool: Object) -> None:
        self._complain(POOLS, pool)
        cluster = str(spec_of(pool).get("clusterName") or "")
        self._agenda.add(("cluster", namespace_of(pool), cluster))

    def _on_machine(self, machine: Object) -> None:
        self._complain(MACHINES, machine)
        agent = str(spec_of(machine).get("providerID") or "").removeprefix("agent://")
        if self.machines.get(namespace_of(machine), name_of(machine)) is None:
            self._awaited.pop(agent, None)
        elif deleted_at(machine) is not None:
            self._awaited[agent] = namespace_of(machine)
        self._touch_home(namespace_of(machine))

    def _on_agent(self, agent: Object) -> None:
        self._complain(AGENTS, agent)
        self._agenda.add(("agent", namespace_of(agent), name_of(agent)))
        # The cluster it is bound to, and the one it was bound to, which waits until it is free.
        for home in (
            inside(agent, "spec", "clusterDeploymentName", "namespace"),
            annotations_of(agent).get(AGENT_MACHINE_NAMESPACE),
            self._awaited.get(name_of(agent)),
        ):
            if home:
                self._touch_home(home)
        if is_free(agent):
            for key in self._hungry:
                self._agenda.add(key)

    def _on_namespace(self, namespace: Object) -> None:
        self._touch_home(name_of(namespace))

    def _on_secret(self, secret: Object) -> None:
        owners = secret["metadata"].get("ownerReferences") or []
        for owner in owners:
            if owner.get("kind") == CLUSTERS.name:
                self._agenda.add(("cluster", namespace_of(secret), str(owner.get("name"))))

    def _on_config(self, _: Object) -> None:
        self._agenda.add(SYSTEM_KEY)
        for cluster in self.clusters.all():
            self._on_cluster(cluster)

    def _touch_home(self, home: str) -> None:
        key = self._homes.get(home)
        if key is not None:
            self._agenda.add(key)

    def _complain(self, kind: Kind, thing: Object) -> None:
        fault_text = annotations_of(thing).get(FAULT)
        if not fault_text or (uid_of(thing), fault_text) in self._told:
            return
        self._told.add((uid_of(thing), fault_text))
        for complaint in complaints(kind.name, thing):
            log_fields = {"about": f"{kind.name} {name_of(thing)}", "why": complaint}
            logger.warning("planted fault not understood", extra=log_fields)

    # --- decisions and writes -----------------------------------------------------------------

    async def _work(self) -> None:
        while True:
            key = await self._agenda.take()
            try:
                await self._look(key)
                self._tries.pop(key, None)
            except ApiError as error:
                self._later(key, error)
            except Exception:  # one unexpected object must not end the work on all others
                logger.exception(
                    "decision failed with an internal error", extra={"about": "/".join(key)}
                )
                self._agenda.add_at(key, self._clock() + LONGEST_PAUSE)
            finally:
                self._agenda.done(key)

    def _later(self, key: Key, error: ApiError) -> None:
        """Retries soon, with backoff. A conflict is not logged: the watch brings the newer object."""
        tries = self._tries[key] = self._tries.get(key, 0) + 1
        pause = min(FIRST_PAUSE * 2 ** min(tries, 10), LONGEST_PAUSE)
        self._agenda.add_at(key, self._clock() + max(pause, error.retry_after))
        if not error.conflict:
            log_fields = {"about": "/".join(key), "why": str(error), "tries": tries}
            logger.warning("write failed and will be retried", extra=log_fields)

    async def _look(self, key: Key) -> None:
        key_type, namespace, name = key
        if key_type == "system":
            await self._keep_system()
            return
        if key_type == "agent":
            agent = self.agents.get(namespace, name)
            if agent is None:
                return
            decision = play_agent(agent, self._manner, self._clock())
        else:
            snapshot = await self._see(namespace, name)
            decision = decide(snapshot, self._manner, self._clock())
            (self._hungry.add if decision.wants_agents else self._hungry.discard)(key)
        await self._carry_out(key, decision)

    async def _carry_out(self, key: Key, decision: Decision) -> None:
        for write in decision.writes:
            await self._write(write)
        if decision.writes:
            self._agenda.add(key)  # decide about what follows from the writes
        elif decision.look_at is not None:
            self._agenda.add_at(key, decision.look_at)

    async def _write(self, write: Write) -> None:
        kind, namespace, name = place_of(write)
        copy = self._copies[kind]
        try:
            match write:
                case Create():
                    copy.put(await self._create(write))
                case Change():
                    patch = guarded(write.seen, write.patch)
                    copy.put(await self._api.merge(kind, namespace, name, patch))
                case Report():
                    copy.put(await self._api.apply_status(kind, write.seen, write.status))
                case Remove():
                    response = await self._api.delete(kind, namespace, name, write.uid)
                    if response.get("kind") == kind.name:
                        copy.put(response)
                    else:
                        copy.drop(write.seen)
        except ApiError as error:
            if not error.gone:
                raise
            if not isinstance(write, Create):
                copy.drop(write.seen)
                return
            raise
        logger.debug(
            "object written", extra={"how": type(write).__name__, "what": f"{kind.name} {name}"}
        )

    async def _create(self, write: Create) -> Object:
        kind, namespace, name = place_of(write)
        try:
            return await self._api.create(kind, write.body)
        except ApiError as error:
            if not error.exists:
                raise
        if write.adopt is not None:
            return await self._api.merge(kind, namespace, name, write.adopt)
        return await self._api.get(kind, namespace, name)

    # --- snapshots ----------------------------------------------------------------------------

    async def _see(self, namespace: str, name: str) -> Seen:
        cluster, home = self.clusters.get(namespace, name), control_plane_namespace(namespace, name)
        pools = [
            pool
            for pool in self.pools.within(namespace)
            if spec_of(pool).get("clusterName") == name
        ]
        if cluster is None and not pools:
            return Seen(None)
        # Requests first: while we wait for them, the copies change.
        home_namespace, input_keys = await self._home(cluster, home), await self._given(cluster)
        return Seen(
            cluster=self.clusters.get(namespace, name),
            pools=tuple(pools),
            machines=tuple(self.machines.within(home)),
            agents=tuple(self._agents(cluster, home)),
            namespace=home_namespace,
            secrets={
                name_of(secret): secret
                for secret in self.secrets.within(namespace)
                if cluster is not None and labels_of(secret).get(PLAYED_FOR) == uid_of(cluster)
            },
            given=input_keys,
            supported=supported_by(self.config.get(SYSTEM, SUPPORTED)),
        )

    def _agents(self, cluster: Object | None, home: str) -> list[Object]:
        namespace = agent_namespace(cluster) if cluster is not None else ""
        if namespace:
            return self.agents.within(namespace)
        # These pools have outlived their cluster: no spec names the namespace of its agents any more.
        return [
            agent
            for agent in self.agents.all()
            if annotations_of(agent).get(AGENT_MACHINE_NAMESPACE) == home
        ]

    async def _home(self, cluster: Object | None, home: str) -> Object | None:
        namespace = self.namespaces.get("", home)
        if namespace is not None or cluster is None or deleted_at(cluster) is None:
            return namespace
        # Ask the API server before the cluster is deleted: a namespace without our label is in no copy, yet exists.
        try:
            return await self._api.get(NAMESPACES, "", home)
        except ApiError as error:
            if error.gone:
                return None
            raise

    async def _given(self, cluster: Object | None) -> dict[str, frozenset[str] | None]:
        """The keys of the Secrets in the spec. They are not watched: the fake must not read all Secrets of a hub."""
        if cluster is None or deleted_at(cluster) is not None or not needs_inputs(cluster):
            return {}
        keys_by_secret: dict[str, frozenset[str] | None] = {}
        for name in inputs_to_look_at(cluster):
            try:
                secret = await self._api.get(SECRETS, namespace_of(cluster), name)
                keys_by_secret[name] = frozenset(secret.get("data") or {})
            except ApiError as error:
                if not error.gone:
                    raise
                keys_by_secret[name] = None
        return keys_by_secret

    async def _keep_system(self) -> None:
        """Creates what an installed HyperShift has: its namespace and the versions it supports."""
        if self.config.get(SYSTEM, SUPPORTED) is not None:
            return
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM}}
        try:
            await self._api.create(NAMESPACES, namespace)
        except ApiError as error:
            if not error.exists:
                raise
        await self._write(Create(CONFIG_MAPS, supported_config_map()))
