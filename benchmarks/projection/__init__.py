"""The projection against general solvers, on the same sets and points, in one run."""
