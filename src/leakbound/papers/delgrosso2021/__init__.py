"""Bounding information leakage: the Bayes attacker, the gap, information, attributes."""
