"""The services of the data centre, one file each: what their verbs do to the state. Pure."""
