"""An audit of synthetic data: tables in, the ordinary path of an audit, and controls beside its attacks."""
