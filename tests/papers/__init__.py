"""The papers."""
