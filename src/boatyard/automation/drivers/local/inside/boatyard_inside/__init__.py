"""What runs in Ansible's environment: supervisor, confinement, fork server. It imports nothing of Boatyard."""
