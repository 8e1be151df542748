"""Calls as users write them, with their own libraries: ``python -m tests.libraries`` runs them."""
