"""Releases: what leaves the house. Models never leave this room, only arrays."""
