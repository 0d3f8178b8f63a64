"""Plays HyperShift against its real CRDs on a real API server. `process.play` runs it, `decide` is its pure heart.

It shares no module with the rest of Boatyard: what is rehearsed against it must not have made it.
"""
