"""Examples in shards: which algorithm, what engines cost, and how far one machine goes."""
