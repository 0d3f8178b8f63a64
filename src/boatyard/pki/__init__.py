"""Certificates: made, kept and checked."""
