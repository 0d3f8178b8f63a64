"""What is shipped for hubs is found, and the names in it are those that the service looks for."""

from __future__ import annotations

from pathlib import Path

from boatyard.resources.hubs.check.requirements import (
    EDA_FILE,
    HOSTED_FILE,
    OPERATOR_FILE,
    OUR_CRDS,
    list_needs,
)
from boatyard.wiring.hub_manifests import (
    AUTOMATION,
    OPERATOR,
    OPERATOR_EDA,
    OPERATOR_HOSTED,
    read_shipped_crds,
    read_shipped_roles,
)


def test_our_crds_are_shipped() -> None:
    shipped = {
        (crd["metadata"]["name"], version["name"])
        for crd in read_shipped_crds()
        for version in crd["spec"]["versions"]
    }

    assert {(crd.name, crd.version) for crd in OUR_CRDS} == shipped


def test_the_roles_of_the_service_name_what_they_grant() -> None:
    roles = read_shipped_roles()

    for rights in (roles.service, roles.system, roles.discovery):
        needs = [str(need) for need in list_needs(rights)]
        assert needs
        assert not [need for need in needs if "*" in need], "least privilege has no stars"


def test_what_others_need_on_a_hub_is_shipped_in_the_files_that_are_named() -> None:
    roles = read_shipped_roles()

    for file, names in {
        OPERATOR_FILE: {OPERATOR: (roles.operator, roles.operator_system)},
        HOSTED_FILE: {OPERATOR_HOSTED: (roles.operator_hosted,)},
        EDA_FILE: {OPERATOR_EDA: (roles.operator_eda,), AUTOMATION: (roles.automation,)},
    }.items():
        text = (Path(__file__).parents[2] / file).read_text()
        for name, rights in names.items():
            assert f"name: {name}\nrules:" in text.replace("\n  namespace: boatyard-system", "")
            assert all(one.rules for one in rights)
