"""The programs of real clusters: which versions there are, where they are, and how they are installed.

Other packages use `Assets` to find them; only `boatyard assets` installs them.
"""

from boatyard.assets.found import Assets, default_directory
from boatyard.assets.releases import CONTROL_PLANE, DEFAULT, PINNED, PROGRAMS

__all__ = ["CONTROL_PLANE", "DEFAULT", "PINNED", "PROGRAMS", "Assets", "default_directory"]
