"""Orders: what one hub is asked to carry out for one cluster."""
