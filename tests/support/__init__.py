"""Fixtures and values shared by several suites, one file per subject."""
