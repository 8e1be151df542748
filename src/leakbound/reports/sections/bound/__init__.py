"""A bound."""
