"""Ansible roles that are templates: their folder, their form, their content. Imports only `model`."""
