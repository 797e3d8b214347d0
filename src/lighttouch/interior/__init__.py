"""A primal-dual interior point for extended linear-quadratic programs.

`program.py` states them, `systems.py` solves Newton's equations (sparse or dense), `path.py` takes
the steps. The solver `solvers/interior.py` and the projection `projections/rows/nearest_interior.py`
follow its paths, each with its own idea of a good point.
"""
