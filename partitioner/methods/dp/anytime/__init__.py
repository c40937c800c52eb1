"""Anytime search for chains over ideals that are never all enumerated, for lattices that do not fit."""
