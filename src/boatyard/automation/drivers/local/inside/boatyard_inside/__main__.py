"""`python -I -S -B boatyard_inside VERB …`: the program that Boatyard starts in Ansible's environment."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def main() -> None:
    verb, arguments = sys.argv[1], sys.argv[2:]
    if verb == "supervise":
        from boatyard_inside import supervise

        supervise.main(arguments)
    elif verb == "probe":
        from boatyard_inside import confine

        confine.main(arguments)
    elif verb == "serve":
        from boatyard_inside import server

        server.main(arguments)
    else:
        sys.exit(f"unknown verb {verb!r}")


if __name__ == "__main__":
    main()
