"""The methods: each takes a problem and returns stages with a bound."""
