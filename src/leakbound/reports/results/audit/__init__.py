"""What the page of an audit is handed."""
