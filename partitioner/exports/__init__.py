"""What other tools read: one writer a file."""
