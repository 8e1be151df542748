"""Bound: what theorems allow any attacker, as reports."""
