"""What is shipped for hubs is found, and the names in it are those that the service looks for."""

from __future__ import annotations

from boatyard.app.deployed import shipped_crds, shipped_roles
from boatyard.resources.hubs.needs import OURS, needs_of


def test_our_crds_are_shipped() -> None:
    shipped = {
        (crd["metadata"]["name"], version["name"])
        for crd in shipped_crds()
        for version in crd["spec"]["versions"]
    }

    assert {(crd.name, crd.version) for crd in OURS} == shipped


def test_the_roles_of_the_service_name_what_they_grant() -> None:
    roles = shipped_roles()

    for rights in (roles.service, roles.system, roles.looking):
        needs = [str(need) for need in needs_of(rights)]
        assert needs
        assert not [need for need in needs if "*" in need], "least privilege has no stars"
