"""Figure 2: constraint violation, and average constraint checks per iteration."""
