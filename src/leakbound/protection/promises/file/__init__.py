"""Promise file: one record is left out in secret for the life of the data, and all others are used."""
