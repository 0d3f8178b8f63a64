"""Clusters whose control plane HyperShift runs on a Kubernetes hub. See docs/contributing/hosted.md.

Pure modules decide what to write (`settings`, `rendering`, `checking`, `versions`) and interpret what was read
(`reading`, `machines`, `slots`). `driver` implements the port; the other modules do its work on the hub.
"""
