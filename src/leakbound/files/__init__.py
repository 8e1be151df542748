"""Files: private ones, temporary ones, those of others, signals in a folder, and what differs between systems."""
