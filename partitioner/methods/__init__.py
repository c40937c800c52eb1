"""The methods: each takes a problem and returns parts with a lower bound."""
