"""Measure: audits of models and statistics by attacks, from a request to a report."""
