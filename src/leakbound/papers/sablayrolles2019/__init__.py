"""White-box against black-box: Bayes-optimal strategies."""
