"""`python -m tests.support.planted_bugs.command MODULE:FUNCTION VERB …`: a command of ours with a planted bug."""

from __future__ import annotations

import sys
from importlib import import_module

from boatyard.app.main import main

if __name__ == "__main__":
    plant, *words = sys.argv[1:]
    module, _, name = plant.partition(":")
    getattr(import_module(module), name)()
    sys.exit(main(words))
