"""`boatyard template test`: tries a role on the twin before anybody orders from it."""
