"""Roles for tests: files by name, with a small good role to start from."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

from boatyard.roles.content import Files, RoleFileContent

TEMPLATE = """
id: web_small
title: Small web cluster
description: Three servers and a welcome page.
node_sets:
  compute: {host_type: bm-small, size: 3}
"""
SPECS = """
argument_specs:
  main:
    short_description: A web cluster
    options:
      greeting:
        type: str
        default: hello
        description: What the page says.
      replicas:
        type: int
        required: true
        choices: [1, 2, 3]
      password:
        type: str
        no_log: true
"""
TASKS = """
- name: Greet
  ansible.builtin.debug:
    msg: "{{ greeting }}"
"""
GOOD = {
    "meta/template.yaml": TEMPLATE,
    "meta/argument_specs.yml": SPECS,
    "tasks/post_install.yaml": TASKS,
}


def files(texts: dict[str, str] | None = None, /, **changes: str | None) -> Files:
    """The good role with some files otherwise: `specs=`, `template=`, `osac=`; None takes one away."""
    found = dict(GOOD if texts is None else texts)
    names = {
        "specs": "meta/argument_specs.yml",
        "template": "meta/template.yaml",
        "osac": "meta/osac.yaml",
        "tasks": "tasks/post_install.yaml",
    }
    for key, text in changes.items():
        if text is None:
            found.pop(names[key])
        else:
            found[names[key]] = text
    return {name: RoleFileContent(dedent(text).encode()) for name, text in found.items()}


def write(folder: Path, made: Files) -> Path:
    """Puts the files on disk."""
    for name, file in made.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.data)
        path.chmod(0o755 if file.executable else 0o644)
    return folder
