"""Tables 2 and 3: iterations and checks to epsilon, with fitted exponents."""
