"""What entry points do with arguments that make no sense."""
