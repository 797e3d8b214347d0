"""Exact projection onto orders: sweeps, then maximum flow."""
