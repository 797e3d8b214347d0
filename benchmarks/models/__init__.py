"""Lattice models against boosted trees: accuracy and processor time on real and generated tables.

    python -m benchmarks.models [--tables housing,adult] [--splits 0,1] [--models lighttouch]
    python -m benchmarks.models --workers 16
    python -m benchmarks.models --scaling 10000,100000

Results go into a file, one line per fit, as soon as they are known (`--results`); the same call
goes on where an earlier one was stopped. The protocol is in docs/benchmarks.md.
"""
