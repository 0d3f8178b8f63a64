"""The code that runs in Ansible's environment: supervisor, confinement, fork server. Imports nothing of Boatyard."""
