"""Runs carried out by Event-Driven Ansible: we send an event and get a signed result back."""
