"""Network namespaces, bridges and veth pairs, found by name. Needs root and `ip`."""
