"""Provable membership inference privacy: noise for a promise on the attacker's accuracy."""
