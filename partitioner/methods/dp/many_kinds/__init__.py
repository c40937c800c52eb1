"""The search for chains over devices of many kinds, in which no table has an entry for every set of devices."""
