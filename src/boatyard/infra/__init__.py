"""The data centre, one folder per service: what we ask of it (`port.py`) and who answers (`drivers/`)."""
