"""The search for chains over many kinds of devices, where a table of all sets of devices is too large."""
