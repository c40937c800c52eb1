"""Writers of files for other tools, one in each module."""
