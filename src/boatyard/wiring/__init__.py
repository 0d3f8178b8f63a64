"""Puts the parts together: settings, drivers, reconcilers, the API, child processes. Used by commands and proofs."""
