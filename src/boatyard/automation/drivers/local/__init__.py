"""Runs a template's role on this machine, with Ansible as a program of its own."""
