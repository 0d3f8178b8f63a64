"""A stage for the player's decisions: objects in memory, time in steps. No API server, no waiting.

It keeps the few rules of an API server that decisions rest on: versions that guard writes, finalizers, generations,
merge patches, namespaces that take their contents with them. Everything else is the real server's business.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable
from typing import Any

from boatyard.fakes.hypershift.agents import decide_agent
from boatyard.fakes.hypershift.decision import decide_cluster
from boatyard.fakes.hypershift.names import (
    AGENT_MACHINE_NAMESPACE,
    CLUSTER_UID_LABEL,
    control_plane_namespace,
)
from boatyard.fakes.hypershift.objects import format_time
from boatyard.fakes.hypershift.snapshot import FakeSettings, HostedClusterSnapshot, agent_namespace
from boatyard.fakes.hypershift.writes import (
    CreateObject,
    Decision,
    DeleteObject,
    PatchObject,
    UpdateStatus,
    Write,
    earliest,
    target_of,
)

Object = dict[str, Any]

START = 1_800_000_000.0
MOST_PASSES = 200


class MemoryApi:
    """Objects by kind, namespace and name. `conflicts` counts writes that came too late."""

    def __init__(self, manner: FakeSettings, *things: Object) -> None:
        self.manner = manner
        self.now = START
        self.held: dict[tuple[str, str, str], Object] = {}
        self.conflicts = 0
        self.written: list[Write] = []
        self._versions = itertools.count(1)
        for thing in things:
            self.put(thing)

    def put(self, thing: Object) -> Object:
        """As `kubectl create` does."""
        made = copy.deepcopy(thing)
        number = next(self._versions)
        made["metadata"] |= {
            "uid": f"00000000-0000-4000-8000-{number:012d}",
            "creationTimestamp": format_time(self.now),
            "resourceVersion": str(number),
            "generation": 1,
        }
        self.held[_key(made)] = made
        return made

    def get(self, kind: str, name: str, namespace: str = "t") -> Object | None:
        return self.held.get((kind, "" if kind == "Namespace" else namespace, name))

    def all(self, kind: str) -> list[Object]:
        return [thing for (its, _, _), thing in sorted(self.held.items()) if its == kind]

    def edit(self, kind: str, name: str, patch: Object, namespace: str = "t") -> None:
        """As `kubectl patch` does."""
        thing = self.get(kind, name, namespace)
        assert thing is not None
        self._change(thing, patch)

    def plant(self, kind: str, name: str, fault: str | None, namespace: str = "t") -> None:
        marked = {"metadata": {"annotations": {"player.boatyard.io/fault": fault}}}
        self.edit(kind, name, marked, namespace)

    def delete(self, kind: str, name: str, namespace: str = "t") -> None:
        thing = self.get(kind, name, namespace)
        assert thing is not None
        self._remove(thing)

    # --- playing ------------------------------------------------------------------------------

    def settle(self) -> float | None:
        """Plays until nothing is written any more; the next moment something is due by itself."""
        for _ in range(MOST_PASSES):
            look_at, wrote = None, False
            for decision in self.decisions():
                look_at = earliest(look_at, decision.next_check)
                wrote = self.carry_out(decision) or wrote
            wrote = self._empty_namespaces() or wrote
            if not wrote:
                return look_at
        raise AssertionError("it never settles")

    def until(self, right: Callable[[], Any], *, within: float = 86400.0) -> float:
        """Steps from one due moment to the next until it is right; the seconds it took."""
        begun = self.now
        while True:
            look_at = self.settle()
            if right():
                return self.now - begun
            assert look_at is not None, "nothing will happen any more"
            assert look_at - begun <= within, f"not right within {within} s"
            self.now = max(self.now, look_at)

    def rest(self, *, within: float = 86400.0) -> None:
        """Steps until nothing is due any more, or so many seconds have passed."""
        end = self.now + within
        while True:
            look_at = self.settle()
            if look_at is None or look_at > end:
                self.now = end
                self.settle()
                return
            self.now = max(self.now, look_at)

    def decisions(self) -> list[Decision]:
        clusters = {
            (pool["metadata"]["namespace"], pool["spec"]["clusterName"])
            for pool in self.all("NodePool")
        } | {
            (one["metadata"]["namespace"], one["metadata"]["name"])
            for one in self.all("HostedCluster")
        }
        found = [decide_cluster(self.see(*key), self.manner, self.now) for key in sorted(clusters)]
        return found + [decide_agent(one, self.manner, self.now) for one in self.all("Agent")]

    def see(self, namespace: str, name: str) -> HostedClusterSnapshot:
        cluster = self.get("HostedCluster", name, namespace)
        home = control_plane_namespace(namespace, name)
        theirs = agent_namespace(cluster) if cluster is not None else ""
        return copy.deepcopy(
            HostedClusterSnapshot(
                cluster=cluster,
                pools=tuple(
                    one
                    for one in self.all("NodePool")
                    if one["metadata"]["namespace"] == namespace
                    and one["spec"]["clusterName"] == name
                ),
                machines=tuple(
                    one for one in self.all("Machine") if one["metadata"]["namespace"] == home
                ),
                agents=tuple(
                    one
                    for one in self.all("Agent")
                    if one["metadata"]["namespace"] == theirs
                    or (one["metadata"].get("annotations") or {}).get(AGENT_MACHINE_NAMESPACE)
                    == home
                ),
                namespace=self.get("Namespace", home),
                secrets={
                    one["metadata"]["name"]: one
                    for one in self.all("Secret")
                    if (one["metadata"].get("labels") or {}).get(CLUSTER_UID_LABEL)
                    and one["metadata"]["namespace"] == namespace
                    and cluster is not None
                    and one["metadata"]["labels"][CLUSTER_UID_LABEL] == cluster["metadata"]["uid"]
                },
            )
        )

    def carry_out(self, decision: Decision) -> bool:
        """Writes as the player does: in order, and no more after one that came too late."""
        for write in decision.writes:
            self.written.append(write)
            if not self._write(write):
                self.conflicts += 1
                return True
        return bool(decision.writes)

    # --- an API server's few rules ------------------------------------------------------------

    def _write(self, write: Write) -> bool:
        kind, namespace, name = target_of(write)
        held = self.held.get((kind.name, namespace, name))
        if isinstance(write, CreateObject):
            if held is None:
                self.put(write.body)
            elif write.merge_if_exists is not None:
                self._change(held, write.merge_if_exists)
            return True
        if held is None:
            return True
        if isinstance(write, DeleteObject):
            if held["metadata"]["uid"] == write.uid:
                self._remove(held)
            return True
        if held["metadata"]["resourceVersion"] != write.current["metadata"]["resourceVersion"]:
            return False
        self._change(held, write.patch if isinstance(write, PatchObject) else {}, report=write)
        return True

    def _change(self, thing: Object, patch: Object, report: Write | None = None) -> None:
        before = copy.deepcopy(thing.get("spec"))
        _merge(thing, copy.deepcopy(patch))
        if isinstance(report, UpdateStatus):
            status = copy.deepcopy(report.status)
            # Only what the player itself says; others may have their own fields there.
            thing["status"] = {**(thing.get("status") or {}), **status}
            for field in set(thing["status"]) - set(status) - {"inventory"}:
                del thing["status"][field]
        if thing.get("spec") != before:
            thing["metadata"]["generation"] += 1
        thing["metadata"]["resourceVersion"] = str(next(self._versions))
        if "deletionTimestamp" in thing["metadata"] and not thing["metadata"].get("finalizers"):
            self.held.pop(_key(thing), None)

    def _remove(self, thing: Object) -> None:
        if "deletionTimestamp" not in thing["metadata"]:
            thing["metadata"]["deletionTimestamp"] = format_time(self.now)
            thing["metadata"]["generation"] += 1
        if thing["kind"] == "Namespace":
            return  # its controller takes it away when it is empty
        self._change(thing, {})

    def _empty_namespaces(self) -> bool:
        """Takes away those that are to go and hold nothing; whether there was one."""
        gone = [
            name
            for (kind, _, name), thing in self.held.items()
            if kind == "Namespace"
            and "deletionTimestamp" in thing["metadata"]
            and not any(place == name for _, place, _ in self.held)
        ]
        for name in gone:
            del self.held["Namespace", "", name]
        return bool(gone)


def _key(thing: Object) -> tuple[str, str, str]:
    about = thing["metadata"]
    return thing["kind"], about.get("namespace", ""), about["name"]


def _merge(target: Object, patch: Object) -> None:
    for field, value in patch.items():
        if value is None:
            target.pop(field, None)
        elif isinstance(value, dict):
            inner = target.get(field)
            target[field] = inner if isinstance(inner, dict) else {}
            _merge(target[field], value)
        else:
            target[field] = value
