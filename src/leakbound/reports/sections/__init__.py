"""What reports say: the results of each kind, and the sentences about them. No HTML page and no chart is made here."""
