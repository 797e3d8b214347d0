"""What every run needs: a clock, signals, progress, one BLAS thread."""
