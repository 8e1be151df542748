"""What every promise begins with: the request, whose records they are, the statistic, and what ledgers know."""
