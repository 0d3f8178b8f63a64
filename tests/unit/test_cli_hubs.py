"""What the verbs about hubs ask for and print, against a server that answers as it is told."""

from __future__ import annotations

import grpc
import pytest
import yaml

from boatyard.app.main import main
from boatyard.cli import hubs
from boatyard.kube.config import read_kubeconfig
from tests.support.kubeconfigs import SECRET, kubeconfig
from tests.support.scripted_server import listing

READY, UNREACHABLE, NOT_READY = 1, 2, 3
TRUE, FALSE = 1, 2


def a_hub(state=READY, *, generation=1, observed=1, **status):
    return {
        "id": "lyon-2",
        "metadata": {"name": "lyon-2", "tenant": "system", "generation": generation},
        "spec": {"kubeconfig": b"***", "namespace": "boatyard-system", "zone": "lyon"},
        "status": {"state": state, "observed_generation": observed, "version": "v1.36.3"} | status,
    }


LOST = a_hub(
    UNREACHABLE,
    message="https://hub.example:6443 cannot be reached: Connection refused",
    version="",
    conditions=[
        {
            "type": 1,
            "status": FALSE,
            "reason": "Unreachable",
            "message": "https://hub.example:6443 cannot be reached: Connection refused",
            "remedy": "see that the address is right and that this machine may reach it",
        },
        {"type": 2},
    ],
)
FINDINGS = [
    {"check": "reachable", "result": 1, "message": "https://hub.example:6443 answers"},
    {
        "check": "crd claims.boatyard.io",
        "result": 3,
        "message": "claims.boatyard.io is not served in version v1",
        "remedy": "boatyard hub prepare lyon-2",
    },
    {
        "check": "clock",
        "result": 2,
        "message": "it is 90 s behind that of this machine",
        "remedy": "let both be set by NTP",
    },
]
LACKING = {"hub": "lyon-2", "version": "v1.36.3", "findings": FINDINGS}
GOOD = {"hub": "lyon-2", "version": "v1.36.3", "ready": True, "findings": FINDINGS[:1]}


@pytest.fixture
def hub_server(scripted_server):
    scripted_server.answers["Hubs/List"] = listing(a_hub())
    scripted_server.answers["Hubs/Get"] = lambda request, context: {"object": a_hub()}
    scripted_server.answers["Hubs/Create"] = lambda request, context: {"object": a_hub(observed=0)}
    return scripted_server


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "hub.yaml"
    path.write_bytes(kubeconfig())
    return str(path)


def test_a_hub_is_registered_and_looked_at(hub_server, config, capsys):
    words = ["create", "hub", "lyon-2", "--kubeconfig", config, "--zone", "lyon"]
    words += ["--driver", "platform=hosted", "--setting", "hosted.platform=Agent"]
    words += ["--capacity", "bm-small=8", "-l", "disk=nvme", "--template", "small", "--cordoned"]

    assert main(words) == 0

    assert capsys.readouterr().out == (
        "Registered hub lyon-2.\nHub lyon-2 is ready, Kubernetes v1.36.3.\n"
    )
    (request,) = hub_server.requests("Hubs/Create")
    spec = request.object.spec
    assert (request.object.id, request.object.metadata.name) == ("lyon-2", "lyon-2")
    assert read_kubeconfig(spec.kubeconfig).token == SECRET
    assert (spec.zone, dict(spec.drivers)) == ("lyon", {"platform": "hosted"})
    assert dict(spec.settings) == {"hosted.platform": "Agent"}
    assert (dict(spec.capacity), dict(spec.labels)) == ({"bm-small": 8}, {"disk": "nvme"})
    assert (list(spec.templates), spec.cordoned) == (["small"], True)


def test_a_hub_that_does_not_work_is_registered_and_says_why(hub_server, config, capsys):
    hub_server.answers["Hubs/Get"] = lambda request, context: {"object": LOST}

    assert main(["create", "hub", "lyon-2", "--kubeconfig", config]) == 1

    shown = capsys.readouterr()
    assert shown.out == "Registered hub lyon-2.\nNext: boatyard hub check lyon-2\n"
    assert shown.err == (
        "boatyard: hub lyon-2 is UNREACHABLE: https://hub.example:6443 cannot be reached:"
        " Connection refused; see that the address is right and that this machine may reach it\n"
    )


def test_without_a_worker_nobody_waits_for_ever(hub_server, config, capsys, monkeypatch):
    monkeypatch.setattr(hubs, "_FIRST_CHECK_SECONDS", 0.05)
    hub_server.answers["Hubs/Get"] = lambda request, context: {"object": a_hub(0, observed=0)}

    assert main(["create", "hub", "lyon-2", "--kubeconfig", config]) == 1
    assert "see that a worker runs" in capsys.readouterr().err
    assert main(["create", "hub", "lyon-2", "--kubeconfig", config, "--no-wait"]) == 0


def test_an_embedded_hub_has_no_kubeconfig(hub_server, capsys):
    words = ["create", "hub", "h", "--embedded", "--driver", "dns=sim", "--no-wait", "-o", "name"]

    assert main(words) == 0

    assert capsys.readouterr().out == "hub/lyon-2\n"
    assert hub_server.requests("Hubs/Create")[0].object.spec.kubeconfig == b""


@pytest.mark.parametrize(
    "words",
    [
        pytest.param([], id="neither kubeconfig nor embedded"),
        pytest.param(["--embedded", "--kubeconfig", "x"], id="both"),
    ],
)
def test_one_of_the_two_must_be_said(hub_server, words):
    with pytest.raises(SystemExit):
        main(["create", "hub", "h", *words])


def test_a_program_in_the_kubeconfig_never_leaves(hub_server, tmp_path, capsys):
    path = tmp_path / "hub.yaml"
    path.write_bytes(kubeconfig(user={"exec": {"command": "aws"}}))

    assert main(["create", "hub", "h", "--kubeconfig", str(path)]) == 2
    assert "users[u].exec: names a program" in capsys.readouterr().err
    assert hub_server.requests("Hubs/Create") == []


def test_a_check_is_a_table_with_remedies(hub_server, capsys):
    hub_server.answers["Hubs/Check"] = lambda request, context: {"report": LACKING}

    assert main(["hub", "check", "lyon-2"]) == 1

    wide = "claims.boatyard.io is not served in version v1"
    assert capsys.readouterr().out.splitlines() == [
        f"CHECK                   RESULT   {'FOUND'.ljust(len(wide))}  REMEDY",
        f"reachable               ok       {'https://hub.example:6443 answers'.ljust(len(wide))}  -",
        f"crd claims.boatyard.io  lacking  {wide}  boatyard hub prepare lyon-2",
        f"clock                   warning  {'it is 90 s behind that of this machine'.ljust(len(wide))}"
        "  let both be set by NTP",
        "",
        "Hub lyon-2 takes no orders: one thing is lacking.",
    ]


def test_a_good_check_ends_well(hub_server, capsys):
    hub_server.answers["Hubs/Check"] = lambda request, context: {"report": GOOD}

    assert main(["hub", "check", "lyon-2"]) == 0
    assert capsys.readouterr().out.endswith("\nHub lyon-2 takes orders.\n")
    assert main(["hub", "check", "lyon-2", "-o", "yaml"]) == 0
    assert yaml.safe_load(capsys.readouterr().out)["ready"] is True


@pytest.mark.parametrize("words", [["prepare", "lyon-2"], ["check", "lyon-2", "--install"]])
def test_preparing_tells_what_was_done_and_what_is_left(hub_server, capsys, words):
    hub_server.answers["Hubs/Prepare"] = lambda request, context: {
        "done": ["Installed claims.boatyard.io"],
        "report": GOOD | {"findings": FINDINGS[::2]},
    }

    assert main(["hub", *words]) == 0

    assert capsys.readouterr().out.splitlines() == [
        "Installed claims.boatyard.io",
        "",
        "CHECK  RESULT   FOUND                                   REMEDY",
        "clock  warning  it is 90 s behind that of this machine  let both be set by NTP",
        "",
        "Hub lyon-2 takes orders.",
    ]


def test_credentials_are_replaced_and_tried(hub_server, config, capsys):
    hub_server.answers["Hubs/Update"] = lambda request, context: {
        "object": a_hub(generation=2, observed=1)
    }
    hub_server.answers["Hubs/Get"] = lambda request, context: {
        "object": a_hub(generation=2, observed=2)
    }

    assert main(["hub", "credentials", "lyon-2", "--kubeconfig", config]) == 0

    (request,) = hub_server.requests("Hubs/Update")
    assert list(request.update_mask.paths) == ["spec.kubeconfig"]
    assert read_kubeconfig(request.object.spec.kubeconfig).token == SECRET
    assert capsys.readouterr().out == (
        "Replaced the credentials of hub lyon-2.\nHub lyon-2 is ready, Kubernetes v1.36.3.\n"
    )


def test_the_same_credentials_again_are_told(hub_server, config, capsys):
    hub_server.answers["Hubs/Update"] = lambda request, context: {"object": a_hub()}

    assert main(["hub", "credentials", "lyon-2", "--kubeconfig", config]) == 0
    assert "already" in capsys.readouterr().out
    assert main(["hub", "credentials", "lyon-2"]) == 2


@pytest.mark.parametrize("verb, cordoned", [("cordon", True), ("uncordon", False)])
def test_cordon(hub_server, capsys, verb, cordoned):
    hub_server.answers["Hubs/Update"] = lambda request, context: {"object": a_hub()}

    assert main([verb, "hub", "lyon-2"]) == 0

    (request,) = hub_server.requests("Hubs/Update")
    assert list(request.update_mask.paths) == ["spec.cordoned"]
    assert request.object.spec.cordoned is cordoned
    assert "orders" in capsys.readouterr().out


def test_a_hub_in_use_is_not_deleted(hub_server, capsys):
    def refuse(request, context):
        context.abort(grpc.StatusCode.FAILED_PRECONDITION, "it is in use")

    hub_server.answers["Hubs/Delete"] = refuse
    assert main(["delete", "hub", "lyon-2"]) == 5
    hub_server.answers["Hubs/Delete"] = lambda request, context: {}
    assert main(["delete", "hub", "lyon-2"]) == 0
    assert capsys.readouterr().out == "Hub lyon-2 is no longer registered.\n"


def test_a_hub_in_full(hub_server, capsys):
    hub_server.answers["Hubs/List"] = listing(LOST)

    assert main(["describe", "hub", "lyon-2"]) == 0

    words = "https://hub.example:6443 cannot be reached: Connection refused"
    assert capsys.readouterr().out.splitlines() == [
        "Name:         lyon-2",
        "ID:           lyon-2",
        "State:        UNREACHABLE",
        "Orders in:    its Kubernetes",
        "Namespace:    boatyard-system",
        "Zone:         lyon",
        "Age:          -",
        "",
        "Conditions:",
        "  TYPE        STATUS   SINCE  REASON       MESSAGE",
        f"  REACHABLE   FALSE    -      Unreachable  {words}",
        "  AUTHORIZED  UNKNOWN  -      -            -",
        "",
        "Next:",
        "  see that the address is right and that this machine may reach it",
        "  boatyard hub check lyon-2",
    ]


def test_the_load_of_a_hub_is_what_is_offered(hub_server, capsys):
    hub_server.answers["Hubs/List"] = listing(
        a_hub(capacity={"bm-small": 4, "clusters": 9}, used={"bm-small": 1, "clusters": 1})
    )

    assert main(["get", "hubs"]) == 0

    assert capsys.readouterr().out.splitlines() == [
        "NAME    STATE  ZONE  VERSION  IN USE                     CORDONED  MESSAGE",
        "lyon-2  READY  lyon  v1.36.3  bm-small:1/4,clusters:1/9  -         -",
    ]
