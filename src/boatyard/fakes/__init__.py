"""Stand-ins for outside systems, one independent program each, against the real interfaces of that system."""
