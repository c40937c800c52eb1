"""Small models of five libraries, and what is asked of each: see ``scripts/zoo.py``."""
