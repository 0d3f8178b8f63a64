"""PostgreSQL: resources, their events, who holds which scarce thing, and what is due. One transaction for all four."""
