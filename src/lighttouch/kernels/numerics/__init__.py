"""Numerical routines that know nothing of problems."""
