"""Where settings come from, and what is said when one is wrong."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import pytest

from boatyard.model.errors import Refused
from boatyard.wiring.settings import Settings, load_settings


def test_nothing_given_is_the_default() -> None:
    assert load_settings(Namespace(), {}) == Settings()


@pytest.mark.parametrize(
    "flag, environ, file, expected",
    [
        pytest.param("1:1", "2:2", "3:3", "1:1", id="a flag comes first"),
        pytest.param(None, "2:2", "3:3", "2:2", id="then the environment"),
        pytest.param(None, None, "3:3", "3:3", id="then the file"),
        pytest.param(None, None, None, Settings().grpc, id="then the default"),
    ],
)
def test_precedence(
    tmp_path: Path, flag: str | None, environ: str | None, file: str | None, expected: str
) -> None:
    config = tmp_path / "boatyard.toml"
    config.write_text(f'grpc = "{file}"\n' if file else "")
    variables = {"BOATYARD_CONFIG": str(config)}
    if environ:
        variables["BOATYARD_GRPC"] = environ
    assert load_settings(Namespace(grpc=flag), variables).grpc == expected


@pytest.mark.parametrize(
    "name, text, expected",
    [
        ("tls", "true", True),
        ("workers_at_once", "8", 8),
        ("lease_seconds", "2.5", 2.5),
        ("allowed_hosts", "a.example, b.example", ("a.example", "b.example")),
    ],
)
def test_the_environment_is_typed(name: str, text: str, expected: object) -> None:
    assert getattr(load_settings(Namespace(), {f"BOATYARD_{name.upper()}": text}), name) == expected


def test_a_wrong_value_is_refused_with_its_source() -> None:
    with pytest.raises(Refused, match="BOATYARD_WORKERS_AT_ONCE"):
        load_settings(Namespace(), {"BOATYARD_WORKERS_AT_ONCE": "many"})


@pytest.mark.parametrize("content", ['colour = "red"\n', "grpc = [\n", "grpc = 7\n"])
def test_a_wrong_file_is_refused(tmp_path: Path, content: str) -> None:
    config = tmp_path / "boatyard.toml"
    config.write_text(content)
    with pytest.raises(Refused):
        load_settings(Namespace(), {"BOATYARD_CONFIG": str(config)})


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="cannot read"):
        load_settings(Namespace(), {"BOATYARD_CONFIG": str(tmp_path / "none.toml")})
