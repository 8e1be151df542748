"""Attacks on simulated releases of who was drawn."""
