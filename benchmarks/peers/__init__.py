"""Our speed against other libraries: each in an environment and a process of its own, judged by us
from the parameters it hands back.
"""
