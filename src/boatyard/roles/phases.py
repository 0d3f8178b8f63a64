"""The phases of a role: which files under `tasks/` are run, and in which order. Pure."""

from __future__ import annotations

from collections.abc import Collection

INSTALL = "install"  # the role decides what is done
HOOKS = ("pre_install", "post_install", "validate", "scale", "delete")  # around the platform's plan
PHASES = (INSTALL, *HOOKS)
YAML_SUFFIXES = (".yaml", ".yml")


def task_files(phase: str) -> tuple[str, ...]:
    return tuple(f"tasks/{phase}{ending}" for ending in YAML_SUFFIXES)


def phases_of(files: Collection[str]) -> tuple[str, ...]:
    """The phases that a role with these files has, in the order in which they run."""
    order = ("pre_install", "install", "post_install", "validate", "scale", "delete")
    return tuple(phase for phase in order if any(file in files for file in task_files(phase)))
