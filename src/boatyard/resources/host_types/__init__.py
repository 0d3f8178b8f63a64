"""Host types: kinds of machines that templates ask for."""
