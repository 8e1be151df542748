"""What a certificate holds: its public half, and that of the owner."""
