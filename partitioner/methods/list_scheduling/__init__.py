"""Operators placed one by one: one engine, the rules of several papers."""
