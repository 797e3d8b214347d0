"""The parts of `solve`: what a run may spend, what it records, and how its answer is made."""
