"""The charts of reports, on axes of matplotlib and as SVG."""
