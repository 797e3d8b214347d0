"""A primal-dual interior point for extended linear-quadratic programs.

`program.py` states them, `systems.py` solves Newton's equations (sparse or dense), `path.py` takes
the steps. `solvers/interior.py` and `projections/rows/nearest_interior.py` follow the paths, each
with its own idea of a good point.
"""
