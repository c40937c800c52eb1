"""The dynamic program over ideals, devices and copies, with a choice among alternatives in every stage."""
