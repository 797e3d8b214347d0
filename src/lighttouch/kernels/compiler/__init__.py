"""How plain loops become machine code, and where that is kept."""
