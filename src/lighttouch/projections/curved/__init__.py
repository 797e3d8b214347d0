"""Nearest points under norm, quadratic and other convex constraints."""
