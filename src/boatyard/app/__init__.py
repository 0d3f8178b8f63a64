"""The commands, one file each, and the table of them. What they share is in `wiring`."""
