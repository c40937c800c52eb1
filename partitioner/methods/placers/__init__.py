"""Placement of operators one by one: one engine, and the rules of several papers."""
