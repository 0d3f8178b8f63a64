"""Clusters whose control plane HyperShift runs on a Kubernetes hub. See docs/contributing/hosted.md.

What to write is decided in pure modules (`settings`, `rendering`, `checking`, `versions`), what is read is understood
in others (`reading`, `machines`, `slots`); `driver` answers the port, and the rest acts for it.
"""
