"""What each document is handed: finished text, ids of sentences and rows, each number rounded in the safe direction."""
