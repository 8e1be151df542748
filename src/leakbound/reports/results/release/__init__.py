"""What the page of a release is handed."""
