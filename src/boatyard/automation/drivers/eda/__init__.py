"""Runs carried out by Event-Driven Ansible: an event goes out, a signed result comes back."""
