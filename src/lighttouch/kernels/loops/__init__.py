"""One inner loop per file, each reading like its algorithm."""
