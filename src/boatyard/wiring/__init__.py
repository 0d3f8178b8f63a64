"""Builds processes from their parts: settings, drivers, reconcilers, API, child processes. Used by app and proof."""
