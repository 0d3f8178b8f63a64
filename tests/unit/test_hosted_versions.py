"""Which versions are hosted, and which follow which."""

from __future__ import annotations

import pytest

from boatyard.model.errors import Refused, Unavailable
from boatyard.platforms.drivers.hosted.versions import (
    check_step,
    check_supported,
    parse_version,
    read_supported,
)

SUPPORTED = ("5.0", "4.22", "4.21", "4.17")


@pytest.mark.parametrize(
    "older, newer",
    [
        ("4.17.1", "4.17.2"),
        ("4.17.9", "4.17.10"),
        ("4.9.30", "4.10.0"),
        ("4.22.5", "5.0.0"),
        ("5.0.3", "5.1.0"),
        ("4.17.0-rc.1", "4.17.0-rc.2"),
        ("4.17.0-rc.9", "4.17.0-rc.10"),
        ("4.17.0-ec.3", "4.17.0-rc.1"),
        ("4.17.0-rc.9", "4.17.0"),
        ("4.23.1", "5.0.2"),
    ],
)
def test_versions_have_an_order(older: str, newer: str) -> None:
    assert parse_version(older) < parse_version(newer)


@pytest.mark.parametrize("text", ["", "4.17", "latest", "v4.17.1", "4.17.1;rm"])
def test_what_is_no_version_is_refused(text: str) -> None:
    with pytest.raises(Refused) as caught:
        parse_version(text)
    assert caught.value.violations[0].path == "version"


@pytest.mark.parametrize("version", ["4.17.1", "4.22.0", "5.0.9", "4.23.1", "4.21.0-rc.1"])
def test_a_version_of_a_listed_minor_is_hosted(version: str) -> None:
    check_supported(version, SUPPORTED)


@pytest.mark.parametrize("version", ["4.16.9", "4.18.0", "5.1.0", "6.0.0", "3.11.0"])
def test_any_other_is_refused_with_the_list(version: str) -> None:
    with pytest.raises(Refused) as caught:
        check_supported(version, SUPPORTED)
    assert caught.value.reason == "UnsupportedVersion"
    assert "5.0, 4.22, 4.21, 4.17" in caught.value.violations[0].remedy


def test_an_empty_list_hosts_nothing() -> None:
    with pytest.raises(Refused, match="none"):
        check_supported("4.17.1", ())


def test_without_a_list_hypershift_judges() -> None:
    check_supported("4.1.1", None)


def test_the_list_is_as_hypershift_writes_it() -> None:
    assert read_supported('{"versions":["4.19","4.18"]}') == ("4.19", "4.18")


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"versions": 4}', "4.19"])
def test_a_list_that_cannot_be_read_is_not_an_empty_one(text: str) -> None:
    with pytest.raises(Unavailable):
        read_supported(text)


@pytest.mark.parametrize(
    "present, wanted, pools",
    [
        pytest.param("4.17.1", "4.17.2", ["4.17.1"], id="a patch"),
        pytest.param("4.17.9", "4.18.0", ["4.17.9", "4.16.2"], id="a minor"),
        pytest.param("4.22.1", "5.0.0", [], id="from four to five"),
        pytest.param("4.17.2", "4.17.1", ["4.17.1"], id="back while the nodes have not followed"),
    ],
)
def test_steps_that_can_be_taken(present: str, wanted: str, pools: list[str]) -> None:
    check_step(present, wanted, pools)


@pytest.mark.parametrize(
    "present, wanted, pools, words",
    [
        pytest.param("4.18.1", "4.17.9", [], "go back", id="a minor back"),
        pytest.param("4.17.1", "4.19.0", [], "4.18 first", id="two minors at once"),
        pytest.param("4.22.1", "5.1.0", [], "5.0 first", id="two at once over the border"),
        pytest.param("4.17.2", "4.17.1", ["4.17.2"], "older than its nodes", id="behind its nodes"),
        pytest.param("4.18.1", "4.19.0", ["4.16.2"], "too far behind", id="nodes left behind"),
    ],
)
def test_steps_that_cannot(present: str, wanted: str, pools: list[str], words: str) -> None:
    with pytest.raises(Refused, match=words) as caught:
        check_step(present, wanted, pools)
    assert caught.value.reason == "VersionStep"
    assert caught.value.violations[0].remedy
