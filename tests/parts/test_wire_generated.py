"""What is made from proto/ is committed as it is made; an edit that was not followed is seen."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from boatyard.model import wire
from boatyard.model.generated import projection, rest
from tests.support.kube_hub.crds import FOLDER as CRDS
from tests.support.kube_hub.crds import crds, schema_of

ROOT = Path(__file__).parents[2]


def check(root: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, ROOT / "tools/generate.py", "--check", "--root", root]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for folder in ("proto", "src/boatyard/model/generated", "deploy/crds"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    return tmp_path


def test_generated_files_are_up_to_date() -> None:
    done = check(ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_field_added_to_a_proto_file_makes_the_check_fail(copy: Path) -> None:
    edited = copy / "proto/osac/private/v1/hub_type.proto"
    edited.write_text(edited.read_text().replace("string zone = 1000;", "string area = 1000;"))
    done = check(copy)
    assert done.returncode == 1
    for name in ("wire.binpb", "osac.py", "convert.py", "openapi.json"):
        assert f"stale src/boatyard/model/generated/{name}" in done.stdout


def test_an_edited_generated_file_makes_the_check_fail(copy: Path) -> None:
    edited = copy / "src/boatyard/model/generated/osac.py"
    edited.write_text(edited.read_text().replace("READY = 2", "READY = 3"))
    done = check(copy)
    assert done.returncode == 1
    assert done.stdout.split() == ["stale", "src/boatyard/model/generated/osac.py"]


def test_a_broken_proto_file_is_named(copy: Path) -> None:
    (copy / "proto/boatyard/v1/broken.proto").write_text('syntax = "proto3";\nmessage {')
    done = check(copy)
    assert done.returncode == 1
    assert "boatyard/v1/broken.proto" in done.stderr


def test_every_route_names_a_call_of_the_wire() -> None:
    for route in rest.ROUTES:
        method = wire.services()[route.service].methods_by_name[route.rpc]
        named = [n for n in (route.body,) if n not in ("", "*")]
        assert all(n in method.input_type.fields_by_name for n in named)
        if route.response_body:
            assert route.response_body in method.output_type.fields_by_name
        assert route.streaming == method.server_streaming


def test_a_path_of_the_rest_door_leads_to_one_call() -> None:
    places = [(route.method, route.path.replace("object.", "")) for route in rest.ROUTES]
    assert len(places) == len(set(places))


def test_the_openapi_document_has_every_route_and_no_dead_reference() -> None:
    text = (ROOT / "src/boatyard/model/generated/openapi.json").read_text()
    document = json.loads(text)
    shown = {(verb.upper(), path) for path, verbs in document["paths"].items() for verb in verbs}
    assert shown == {(r.method, r.path.replace("{object.", "{")) for r in rest.ROUTES}
    referred = {part.split('"')[0] for part in text.split('"$ref": "#/')[1:]}
    for reference in referred:
        place = document
        for word in reference.split("/"):
            place = place[word]


@pytest.mark.parametrize("name", sorted(path.name for path in CRDS.glob("*.yaml")))
def test_an_edited_crd_makes_the_check_fail(copy: Path, name: str) -> None:
    edited = copy / "deploy/crds" / name
    edited.write_text(edited.read_text().replace("type: string", "type: integer", 1))
    done = check(copy)
    assert done.returncode == 1
    assert done.stdout.split() == ["stale", f"deploy/crds/{name}"]


def test_a_hub_has_three_kinds_of_ours() -> None:
    served = {
        crd["metadata"]["name"]: [one["name"] for one in crd["spec"]["versions"]] for crd in crds()
    }
    assert served == {
        "clusterorders.osac.openshift.io": ["v1alpha1"],
        "claims.boatyard.io": ["v1"],
        "leftovers.boatyard.io": ["v1"],
    }


def test_the_crd_of_orders_has_the_names_of_the_real_one() -> None:
    spec = schema_of("clusterorders")["properties"]["spec"]
    assert spec["required"] == ["templateID"]
    assert set(spec["properties"]["network"]["properties"]) == {"podCIDR", "serviceCIDR"}
    assert spec["properties"]["templateID"]["x-kubernetes-validations"]
    assert spec["properties"]["releaseImage"]["maxLength"] == 512
    crd = next(one for one in crds() if one["spec"]["names"]["kind"] == "ClusterOrder")
    assert crd["spec"]["names"]["shortNames"] == ["cord"]
    (version,) = crd["spec"]["versions"]
    assert version["subresources"] == {"status": {}}
    columns = [one["name"] for one in version["additionalPrinterColumns"]]
    assert columns == ["Template", "Phase", "Cluster", "Age"]


def test_the_crd_of_orders_has_no_place_for_credentials() -> None:
    status = schema_of("clusterorders")["properties"]["status"]["properties"]["boatyard"]
    assert "items" in status["properties"]
    assert "credentials" not in status["properties"]


def test_secrets_are_known_by_path() -> None:
    assert projection.SENSITIVE["Cluster"] == ("spec.pull_secret", "spec.secret_parameters")
    assert projection.SENSITIVE["Hub"] == ("spec.kubeconfig",)
    assert "status.break_glass_credentials.password" in projection.SENSITIVE["Tenant"]


def test_references_are_known_by_path() -> None:
    found = projection.REFERENCES["Cluster"]
    assert found["spec.template"] == "ClusterTemplate"
    assert found["spec.node_sets.*.host_type"] == "HostType"
    assert found["spec.network_attachment.security_groups.*"] == "SecurityGroup"


def test_what_tenants_do_not_see_is_known_by_message() -> None:
    assert projection.PRIVATE_FIELDS["Metadata"] == ("finalizers",)
    assert set(projection.PRIVATE_FIELDS["ClusterStatus"]) == {
        "hub",
        "placement",
        "observed_generation",
    }
    assert projection.PUBLIC_FIELDS["Hub"] == ()
