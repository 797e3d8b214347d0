"""Nearest points under orders w[i] <= w[j], on any graph and on lattices."""
