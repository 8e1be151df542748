"""Promise anyone: differential privacy on all records, from declared ranges and levels alone."""
