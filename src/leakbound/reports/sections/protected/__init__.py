"""A calibration, or a release with noise."""
