"""Published measurements and the predictions of the library."""
