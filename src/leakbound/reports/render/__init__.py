"""From what a report says to a page, a fragment for a notebook and a text."""
