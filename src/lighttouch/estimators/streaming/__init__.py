"""Models from files larger than memory: one part of the rows at a time."""
