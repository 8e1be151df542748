"""The version, alone in a file so that the build and the reports read the same line."""

__version__ = "0.1.0"
