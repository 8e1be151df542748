"""Ratios and memory, measured."""
