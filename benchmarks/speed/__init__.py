"""Our speed against ourselves, against unconstrained SGD and against the paper's algorithm in
C++.
"""
