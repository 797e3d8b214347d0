"""The compiled inner loops; numba lives in this folder and nowhere else."""
