"""An audit of an attribute."""
