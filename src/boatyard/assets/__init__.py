"""The programs real clusters are made of: which versions, where they are, how they come here.

Everybody asks `Assets`; only `boatyard assets` installs.
"""

from boatyard.assets.found import Assets, default_directory
from boatyard.assets.releases import CONTROL_PLANE, DEFAULT, PINNED, PROGRAMS

__all__ = ["CONTROL_PLANE", "DEFAULT", "PINNED", "PROGRAMS", "Assets", "default_directory"]
