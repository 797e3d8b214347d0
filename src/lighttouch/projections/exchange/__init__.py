"""Nearest points where no process holds the whole set: blocks that workers project, with exchange
between rounds, and an exact end.
"""
