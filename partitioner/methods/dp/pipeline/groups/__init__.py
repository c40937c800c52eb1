"""The dynamic program for explicit groups of devices, where links differ by pair of groups."""
