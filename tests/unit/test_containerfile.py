"""The image for hubs: what its build copies is there, and what it runs is what the Deployment calls."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
CONTAINERFILE = (ROOT / "deploy" / "Containerfile").read_text()


def instructions(text: str) -> list[tuple[str, str]]:
    """Each instruction with its words; lines that go on are one, and comments are none."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    whole = "\n".join(lines).replace("\\\n", " ").splitlines()
    return [(name, words) for name, _, words in (line.partition(" ") for line in whole) if name]


def copied(text: str) -> list[str]:
    """The paths of the sources that a build copies; what comes from another stage is none of them."""
    words = [said.split() for name, said in instructions(text) if name in ("COPY", "ADD")]
    assert all(not one[0].startswith("--") or one[0].startswith("--from=") for one in words)
    return [path for one in words if not one[0].startswith("--") for path in one[:-1]]


def missing(text: str) -> list[str]:
    """What a build would look for in vain: paths, lists of requirements, and what a wheel is made of."""
    paths = copied(text)
    listed = re.findall(r"-r (\S+)", text)
    force = project()["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    about = project()["project"]
    wanted = [*listed, *force, "pyproject.toml", "src", about["readme"], *about["license-files"]]
    return [path for path in paths if not (ROOT / path).exists()] + [
        path for path in wanted if not any(Path(path).is_relative_to(one) for one in paths)
    ]


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def last(name: str) -> str:
    return [words for one, words in instructions(CONTAINERFILE) if one == name][-1]


def container() -> dict[str, Any]:
    text = (ROOT / "deploy" / "operator" / "deployment.yaml").read_text()
    (found,) = yaml.safe_load(text)["spec"]["template"]["spec"]["containers"]
    return dict(found)


def test_the_image_copies_what_is_there_and_all_that_it_is_built_from() -> None:
    assert missing(CONTAINERFILE) == []


@pytest.mark.parametrize(
    "was, planted, found",
    [
        pytest.param("COPY src src", "COPY source src", "source", id="a path that is not there"),
        pytest.param("COPY deploy/rbac deploy/rbac\n", "", "deploy/rbac", id="a part of the wheel"),
        pytest.param(
            "-r requirements/run.txt",
            "-r requirements/eda.txt",
            "requirements/eda.txt",
            id="a list that was not copied",
        ),
    ],
)
def test_what_would_be_looked_for_in_vain_is_found(was: str, planted: str, found: str) -> None:
    assert was in CONTAINERFILE
    assert found in missing(CONTAINERFILE.replace(was, planted))


def test_only_what_is_locked_is_installed() -> None:
    installs = re.findall(r"pip (?:install|wheel) (.*)", CONTAINERFILE)
    assert installs
    for words in installs:
        assert words.startswith(("--require-hashes -r ", "--no-index --no-deps ")), words


def test_the_image_runs_the_console_script() -> None:
    (entry,) = json.loads(last("ENTRYPOINT"))
    assert entry in project()["project"]["scripts"]
    assert "/opt/boatyard/bin:" in last("ENV")
    assert last("COPY") == "--from=build /opt/boatyard /opt/boatyard"


def test_the_deployment_gives_the_script_its_words() -> None:
    assert "command" not in container(), "the image knows what it runs"
    assert container()["args"][0] == "operator"


def test_nobody_is_root() -> None:
    """By number: where a Deployment says runAsNonRoot, a name is refused."""
    user, _, group = last("USER").partition(":")
    assert int(user) > 0
    assert int(group) > 0
