"""Network namespaces, bridges and veth pairs, each identified by its name. Needs root and the program `ip`."""
