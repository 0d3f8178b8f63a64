"""One file per revision; each runs the steps in ../sql."""
