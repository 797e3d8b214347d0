"""Figure 1: objective of the projected iterates against iterations and against constraint
checks.
"""
