"""The vocabulary every other floor speaks. Pure: no I/O, no clock, no chance of its own."""
