"""Generators of synthetic records: their distances to the records, the scores made of these, and the release."""
