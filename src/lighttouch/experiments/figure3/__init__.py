"""Figure 3: objective against runtime, after the power-of-four searches."""
