"""Tables 1 to 3 of the paper: published values beside our own, and a verdict on each."""
