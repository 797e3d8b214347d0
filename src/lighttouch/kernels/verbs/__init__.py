"""What kernels do with one record: evaluate, differentiate, step. One implementation per class of
records.
"""
