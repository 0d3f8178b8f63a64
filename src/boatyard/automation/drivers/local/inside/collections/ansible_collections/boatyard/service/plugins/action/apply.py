"""Applies objects to the order's own cluster, or deletes them: `manifests`, `state`, `force`, `timeout`.

May be repeated. In a part of a role that has no cluster, applying fails and deleting succeeds. A simulated cluster
accepts every well-formed manifest, and the result says `simulated`.
"""

from __future__ import annotations

import urllib.parse

from ansible.plugins.action import ActionBase
from ansible_collections.boatyard.service.plugins.plugin_utils.cluster_api import (
    ClusterApi,
    ClusterError,
)
from ansible_collections.boatyard.service.plugins.plugin_utils.manifests import (
    called,
    mistakes,
    told,
)

MANAGER = "boatyard-template"
APPLY = "application/apply-patch+yaml"  # JSON is YAML
DEFINITION = "CustomResourceDefinition"
PRESENT, ABSENT = "present", "absent"
_SECONDS = 60.0
_ARGUMENTS = frozenset({"manifests", "state", "force", "timeout"})
# Fields that others write and that say nothing about the desired state.
_NOT_OURS = frozenset({"resourceVersion", "managedFields", "generation"})


class ActionModule(ActionBase):
    _requires_connection = False

    def run(self, tmp=None, task_vars=None):
        result = super().run(tmp, task_vars)
        get_variable = (task_vars or {}).get
        try:
            arguments = _Wish(self._task.args)
        except ClusterError as error:
            return {**result, "failed": True, "msg": str(error)}
        kubeconfig = (get_variable("boatyard_files") or {}).get("kubeconfig")
        simulated = (get_variable("boatyard_order") or {}).get("simulated")
        if not kubeconfig:  # in tasks/install.yaml the role has requested the cluster itself
            kubeconfig, simulated = (
                get_variable("boatyard_kubeconfig"),
                get_variable("boatyard_simulated"),
            )
        if kubeconfig and simulated:
            return {**result, "changed": False, "simulated": True, "msg": arguments.simulated()}
        if not kubeconfig and arguments.state == ABSENT:
            return {**result, "changed": False, "msg": "there is no cluster: nothing to take away"}
        if not kubeconfig:
            problem = "there is no cluster to write to in this part of the role"
            remedy = "post_install has one, and install after boatyard.service.platform"
            return {**result, "failed": True, "msg": f"{problem}; {remedy}"}
        return {**result, **_carried_out(arguments, kubeconfig)}


class _Wish:
    """The checked arguments of the task. The error names everything that is wrong."""

    def __init__(self, arguments):
        problems = [f"{name}: is not known" for name in sorted(set(arguments) - _ARGUMENTS)]
        manifests = arguments.get("manifests")
        self.manifests = [manifests] if isinstance(manifests, dict) else manifests
        if not isinstance(self.manifests, list):
            problems.append("manifests: give a list of manifests, as data")
        else:
            problems += mistakes(self.manifests)
        self.state = arguments.get("state", PRESENT)
        if self.state not in (PRESENT, ABSENT):
            problems.append(f"state: is {PRESENT} or {ABSENT}")
        self.force = arguments.get("force", True)
        if not isinstance(self.force, bool):
            problems.append("force: is true or false")
        self.seconds = arguments.get("timeout", _SECONDS)
        if isinstance(self.seconds, bool) or not isinstance(self.seconds, int | float):
            problems.append("timeout: is a number of seconds")
        if problems:
            raise ClusterError("\n".join(problems))

    def simulated(self):
        names = ", ".join(
            called(manifest, manifest["metadata"].get("namespace")) for manifest in self.manifests
        )
        return f"simulated, {self.state}: {names}"


def _carried_out(arguments, kubeconfig):
    """Applies or deletes one object after the other. Those before a failure stay; the next run finds them."""
    results, error = [], None
    try:
        cluster = _Cluster(ClusterApi(kubeconfig, arguments.seconds), force=arguments.force)
    except (ClusterError, OSError, ValueError) as failure:
        return {"failed": True, "msg": f"the cluster cannot be reached: {failure}"}
    try:
        if arguments.state == PRESENT:
            for manifest in arguments.manifests:
                results.append(cluster.apply(manifest))
        else:  # in reverse order of applying
            for manifest in reversed(arguments.manifests):
                results.append(cluster.take_away(manifest))
    except ClusterError as failure:
        error = str(failure)
    finally:
        cluster.close()
    summary = ", ".join(f"{result['object']} {result['result']}" for result in results)
    return {
        "changed": any(
            result["result"] not in (UNCHANGED, NOT_THERE, LEAVING) for result in results
        ),
        "objects": results,
        "msg": summary if error is None else error,
        **({} if error is None else {"failed": True}),
    }


CREATED, CHANGED, UNCHANGED = "created", "changed", "unchanged"
DELETED, LEAVING, NOT_THERE = "deleted", "is being deleted", "not there"


class _Cluster:
    def __init__(self, api, *, force):
        self._api = api
        self._force = force
        self._known = {}  # what each apiVersion has, by kind
        self._new_kinds = False  # a definition was applied: its kind may be served in a moment

    def close(self):
        self._api.close()

    def apply(self, manifest):
        try:
            path, name = self._place(manifest)
            before = self._get(path)
            force = "true" if self._force else "false"
            query = f"?fieldManager={MANAGER}&force={force}&fieldValidation=Strict"
            after = self._api.call("PATCH", path + query, manifest, APPLY)
        except ClusterError as error:
            raise _about(manifest, error) from error
        if manifest["kind"] == DEFINITION:
            self._known.clear()
            self._new_kinds = True
        if before is None:
            return {"object": name, "result": CREATED}
        same = _version(before) == _version(after) or _ours(before) == _ours(after)
        return {"object": name, "result": UNCHANGED if same else CHANGED}

    def take_away(self, manifest):
        try:
            try:
                path, name = self._place(manifest)
            except _UnknownKind:
                return {"object": called(manifest), "result": NOT_THERE}
            existing = self._get(path)
            if existing is None:
                return {"object": name, "result": NOT_THERE}
            if existing["metadata"].get("deletionTimestamp"):
                return {"object": name, "result": LEAVING}
            self._delete(path)
        except ClusterError as error:
            raise _about(manifest, error) from error
        return {"object": name, "result": DELETED}

    def _get(self, path):
        try:
            return self._api.call("GET", path)
        except ClusterError as error:
            if error.code == 404:
                return None
            raise

    def _delete(self, path):
        try:
            self._api.call("DELETE", f"{path}?propagationPolicy=Background")
        except ClusterError as error:
            if error.code != 404:
                raise

    def _place(self, manifest):
        """The path of the object in the API, and its display name."""
        version, metadata = manifest["apiVersion"], manifest["metadata"]
        resource = self._resource(version, manifest["kind"])
        root = _root(version)
        namespace = ""
        if resource["namespaced"]:
            namespace = metadata.get("namespace") or "default"
            root = f"{root}/namespaces/{urllib.parse.quote(namespace, safe='')}"
        elif metadata.get("namespace"):
            raise ClusterError("metadata.namespace: this kind has none; leave it out")
        name = urllib.parse.quote(metadata["name"], safe="")
        return f"{root}/{resource['name']}/{name}", called(manifest, namespace)

    def _resource(self, version, kind):
        while True:
            if version not in self._known:
                self._known[version] = self._resources(version)
            resource = self._known[version].get(kind)
            if resource is not None:
                return resource
            if not (self._new_kinds and self._api.has_time()):
                raise _UnknownKind(f"this cluster has no kind {kind} in {version}")
            del self._known[version]
            self._api.pause()

    def _resources(self, version):
        try:
            resource_list = self._api.call("GET", _root(version))
        except ClusterError as error:
            if error.code == 404:
                return {}
            raise
        return {
            resource["kind"]: resource
            for resource in resource_list.get("resources") or []
            if "/" not in resource["name"]
        }


class _UnknownKind(ClusterError):
    pass


def _root(version):
    group, _, number = version.rpartition("/")
    quoted = urllib.parse.quote(number, safe="")
    return f"/apis/{urllib.parse.quote(group, safe='')}/{quoted}" if group else f"/api/{quoted}"


def _about(manifest, error):
    """The error with the name of the object and the API server's message, without secrets."""
    return ClusterError(f"{called(manifest)}: {told(manifest, str(error))}", error.code)


def _version(item):
    return item["metadata"].get("resourceVersion")


def _ours(item):
    """The object without status and server-set metadata, to compare its desired state."""
    metadata = {name: value for name, value in item["metadata"].items() if name not in _NOT_OURS}
    other_fields = {
        name: value for name, value in item.items() if name not in ("metadata", "status")
    }
    return metadata, other_fields
