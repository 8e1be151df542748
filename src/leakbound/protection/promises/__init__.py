"""The promises: how each finds the least noise that keeps it, and what it proves."""
