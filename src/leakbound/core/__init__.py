"""What may be used anywhere: types, games, claims, trade-offs, intervals, seeds, checks."""
