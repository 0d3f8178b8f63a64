"""The real CRDs of HyperShift, Cluster API and the assisted service, out of their Go modules; never committed.

Used by the tests of the platform driver `hosted` and of the player of HyperShift. On purpose without anything of the
product: what is tested against these must not have made them.

    crds = read_crds()                       # the usual ones; skips the test where there is no Go
    install_crds(plane.kubeconfig(), crds)   # returns when all are served; done twice it is done once
"""

from __future__ import annotations

import json
import shutil
import ssl
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

Crd = dict[str, Any]

DOWNLOAD_SECONDS = 300
ESTABLISHED_SECONDS = 60


@dataclass(frozen=True)
class Module:
    """One Go module, pinned by its content; `place` is where in it the CRD `{plural}.{group}` is."""

    path: str
    version: str
    sum: str
    group: str
    place: str
    only_version: str = ""  # of several, the one that is served and stored


HYPERSHIFT = Module(
    path="github.com/openshift/hypershift/api",
    version="v0.0.0-20250331235933-616a2fae81ae",
    sum="h1:kV2JfqpJHzKkXoYFCaweBUmwQ/ihhzuZPxOimes3CB8=",
    group="hypershift.openshift.io",
    place="hypershift/v1beta1/zz_generated.featuregated-crd-manifests/{plural}.{group}/AAA_ungated.yaml",
)
CLUSTER_API = Module(
    path="sigs.k8s.io/cluster-api",
    version="v1.14.2",
    sum="h1:o3GFNaeNFAOEEMpDPfhCK+2CjmV6gtQ8yLEcUwCg7bA=",
    group="cluster.x-k8s.io",
    place="core/config/crd/bases/{group}_{plural}.yaml",
    # What this HyperShift brings along. Without the conversion webhook two versions would spoil each other's objects.
    only_version="v1beta1",
)
ASSISTED = Module(
    path="github.com/openshift/assisted-service",
    version="v1.0.10-0.20230830164851-6573b5d7021d",
    sum="h1:CKw2Y4EdaFsMoqAdr2Tq0nlYTaaXmCRdP0gOu7pN64U=",
    group="agent-install.openshift.io",
    place="config/crd/bases/{group}_{plural}.yaml",
)
MODULES = {module.group: module for module in (HYPERSHIFT, CLUSTER_API, ASSISTED)}

# Only what is in use: each costs the API server time and memory.
USUAL = (
    "hostedclusters.hypershift.openshift.io",
    "nodepools.hypershift.openshift.io",
    "hostedcontrolplanes.hypershift.openshift.io",
    "machines.cluster.x-k8s.io",
    "agents.agent-install.openshift.io",
)


def read_crds(*names: str) -> tuple[Crd, ...]:
    """CRDs by name ("machinesets.cluster.x-k8s.io"), the usual ones when none is named; fit to be created."""
    return tuple(_read(name) for name in names or USUAL)


def needs_go() -> str:
    """The Go on PATH; skips the test that wants it where there is none."""
    program = shutil.which("go")
    if program is None:
        pytest.skip("Go is not on PATH: HyperShift's CRDs are fetched with it")
    return program


def install_crds(kubeconfig: Mapping[str, Any], crds: Sequence[Crd]) -> None:
    """Creates the CRDs that are not there and returns when the API server serves all of them."""
    server = JsonApi(kubeconfig)
    for crd in crds:
        code, answer = server.ask("POST", _CRDS, crd)
        assert code in (201, 409), f"{crd['metadata']['name']}: {code} {answer}"
    for crd in crds:
        _wait_until_served(server, crd)


def _read(name: str) -> Crd:
    """A copy of its own, so that a test may change it."""
    copied: Crd = json.loads(json.dumps(_parsed(name)))
    return copied


@cache
def _parsed(name: str) -> Crd:
    plural, _, group = name.partition(".")
    module = MODULES[group]
    file = _fetched(module) / module.place.format(plural=plural, group=group)
    crd: Crd = yaml.load(file.read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return _fit(crd, module)


def _fit(crd: Crd, module: Module) -> Crd:
    crd.pop("status", None)
    # An annotation without a name after its prefix: the API server refuses it.
    annotations = crd["metadata"].get("annotations") or {}
    crd["metadata"]["annotations"] = {
        key: value for key, value in annotations.items() if not key.endswith("/")
    }
    versions = crd["spec"]["versions"]
    if module.only_version:
        versions = [version for version in versions if version["name"] == module.only_version]
        for version in versions:
            version.update(served=True, storage=True, deprecated=False)
        crd["spec"]["versions"] = versions
    for version in versions:
        _drop_descriptions(version["schema"]["openAPIV3Schema"])
    return crd


def _drop_descriptions(schema: Any) -> None:
    """Half of the schema's size, and nothing of its meaning."""
    if isinstance(schema, list):
        for part in schema:
            _drop_descriptions(part)
    if not isinstance(schema, dict):
        return
    if isinstance(schema.get("description"), str):
        del schema["description"]
    for part in schema.values():
        _drop_descriptions(part)


@cache
def _fetched(module: Module) -> Path:
    """Its folder in Go's module cache; downloaded once, by Go, and compared with what is pinned here."""
    wanted = f"{module.path}@{module.version}"
    with tempfile.TemporaryDirectory() as folder:  # outside of any module
        done = subprocess.run(
            [needs_go(), "mod", "download", "-json", wanted],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=DOWNLOAD_SECONDS,
            check=False,
        )
    assert done.returncode == 0, f"{wanted} cannot be fetched: {done.stdout}{done.stderr}"
    found = json.loads(done.stdout)
    assert found["Sum"] == module.sum, f"{wanted} is not what it was: {found['Sum']}"
    return Path(found["Dir"])


_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def _wait_until_served(server: JsonApi, crd: Crd) -> None:
    name, spec = crd["metadata"]["name"], crd["spec"]
    version = next(version["name"] for version in spec["versions"] if version["served"])
    # Established is not enough: for some 100 ms after it the first request is still answered with 404.
    objects = f"/apis/{spec['group']}/{version}/{spec['names']['plural']}?limit=1"
    end = time.monotonic() + ESTABLISHED_SECONDS
    states: dict[str, str] = {}
    while time.monotonic() < end:
        _, found = server.ask("GET", f"{_CRDS}/{name}")
        conditions = (found.get("status") or {}).get("conditions") or []
        states = {condition["type"]: condition["status"] for condition in conditions}
        if states.get("Established") == "True" and server.ask("GET", objects)[0] == 200:
            return
        time.sleep(0.05)
    raise AssertionError(f"{name} is not served within {ESTABLISHED_SECONDS} s: {states}")


class JsonApi:
    """As much of a client as tests need: JSON with the client certificate of a kubeconfig."""

    def __init__(self, kubeconfig: Mapping[str, Any]) -> None:
        cluster, user = kubeconfig["clusters"][0]["cluster"], kubeconfig["users"][0]["user"]
        authority = b64decode(cluster["certificate-authority-data"]).decode()
        self._url = cluster["server"]
        self._trust = ssl.create_default_context(cadata=authority)
        with tempfile.NamedTemporaryFile() as pair:
            pair.write(b64decode(user["client-certificate-data"]))
            pair.write(b64decode(user["client-key-data"]))
            pair.flush()
            self._trust.load_cert_chain(pair.name)

    def ask(
        self, method: str, path: str, body: Any = None, *, accept: str = "application/json"
    ) -> tuple[int, dict[str, Any]]:
        request = urllib.request.Request(
            self._url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json", "Accept": accept},
        )
        try:
            with urllib.request.urlopen(request, context=self._trust, timeout=30) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, _as_json(error.read())


def _as_json(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except ValueError:
        return {"message": body.decode(errors="replace")}
    return found if isinstance(found, dict) else {"message": str(found)}
