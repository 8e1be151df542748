"""Statistics that are released as numbers: features and their sums, fits, means, and their leave-one-out values."""
