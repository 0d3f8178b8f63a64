"""Puts the parts together: settings, drivers by name, reconcilers, the API, child processes. Used by commands and proofs."""
