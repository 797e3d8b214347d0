"""Approximate projections in groups (ApproxSGD)."""
