"""Ledgers: private files that remember what was released of whom, with which noise, and what it promises together."""
