"""Nearest points under linear rows: their forms, and the methods for rows of any kind."""

from lighttouch.projections.rows.kinds import Bounds, LinearSet, Orders, read_rows

__all__ = ["Bounds", "LinearSet", "Orders", "read_rows"]
