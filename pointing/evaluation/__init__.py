"""Metrics with signatures, copy metrics, significance, reports, plots."""
