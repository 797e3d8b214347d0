"""What is prepared once per object and kept as long as the object lives."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

Made = TypeVar("Made")

MOST_PER_OWNER = 8  # variants (say, of the domain) kept beside each other


class _Kept(dict[Hashable, Any]):
    """What was made for one owner. It stays behind when the owner is pickled or deeply copied."""

    def __reduce__(self) -> tuple[type[_Kept], tuple[()]]:
        return _Kept, ()


def prepared(owner: Any, key: Hashable, build: Callable[[], Made]) -> Made:
    """`build()`, made at the first call for this owner and key, and the same object afterwards.

    It is kept by the owner itself, so that it may refer to the owner: a table of weak keys would
    then keep both forever. Of many keys only the latest stay.
    """
    made = vars(owner).setdefault("_prepared", _Kept())
    if key not in made:
        while len(made) >= MOST_PER_OWNER:
            made.pop(next(iter(made)))
        made[key] = build()
    return made[key]  # type: ignore[no-any-return]
