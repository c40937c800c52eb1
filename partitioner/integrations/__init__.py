"""What needs a framework of its own: one package for each, and an extra that installs it."""
