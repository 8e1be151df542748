"""Attribute inference: how well a release reveals a sensitive attribute of its records."""
