"""The programs of real clusters: which versions there are, where they are, and how they are installed.

Other packages use `Assets` to find them; only `boatyard assets` installs them.
"""

from boatyard.assets.installed_programs import Assets, default_directory
from boatyard.assets.releases import (
    CONTROL_PLANE_PROGRAMS,
    DEFAULT_VERSION,
    PINNED_VERSIONS,
    PROGRAMS,
)

__all__ = [
    "CONTROL_PLANE_PROGRAMS",
    "DEFAULT_VERSION",
    "PINNED_VERSIONS",
    "PROGRAMS",
    "Assets",
    "default_directory",
]
