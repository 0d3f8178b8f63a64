"""Backups: copies of all objects of a cluster, which may outlive the cluster."""
