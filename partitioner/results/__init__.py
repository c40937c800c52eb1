"""What the verbs return, and how it is printed."""
