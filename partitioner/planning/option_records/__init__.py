"""The records of all options of solve, by the sections of the command line's help."""
