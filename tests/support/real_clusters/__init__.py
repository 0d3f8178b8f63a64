"""Real control planes and nodes on this machine, kept by the local keeper. Start with `environment.py`."""
