"""The inner loops, each reading like its algorithm."""
