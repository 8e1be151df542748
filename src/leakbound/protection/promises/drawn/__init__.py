"""Promise drawn: k of the n records are drawn in secret, and their statistic is released."""
