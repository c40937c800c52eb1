"""What a change of the question would buy: the changes, and the answers to the changed questions."""
