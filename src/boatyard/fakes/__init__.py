"""Fakes of outside systems, one independent program each, which use the real interfaces of that system."""
