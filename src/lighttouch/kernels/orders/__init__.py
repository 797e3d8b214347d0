"""Exact projection onto orders: Dykstra's sweeps, then maximum flow."""
