"""Players: programs that take the part of a system we do not have, against that system's real interfaces."""
