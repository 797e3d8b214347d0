"""Engines: where work in parts is done, beside this process (`running.InProcess`).

An engine satisfies `running.Engine` and knows nothing of what it computes. Another one (Dask,
Spark) is another file here.
"""

from lighttouch.engines.on_ray import Ray
from lighttouch.engines.processes import Processes

__all__ = ["Processes", "Ray"]
