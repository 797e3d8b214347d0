"""Training under thousands to millions of rules."""
