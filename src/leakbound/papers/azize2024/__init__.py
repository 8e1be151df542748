"""How much does each datum leak through a mean."""
