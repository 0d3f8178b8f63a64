"""`boatyard template test`: a role is tried on the twin before anybody orders it."""
