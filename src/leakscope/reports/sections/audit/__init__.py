"""An audit of membership."""
