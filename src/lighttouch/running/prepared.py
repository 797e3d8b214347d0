"""What is prepared once per object and kept as long as the object lives."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

Made = TypeVar("Made")

MOST_PER_OWNER = 8  # variants (say, of the domain) kept beside each other

_known: WeakKeyDictionary[Any, dict[Hashable, Any]] = WeakKeyDictionary()


def prepared(owner: Any, key: Hashable, build: Callable[[], Made]) -> Made:
    """`build()`, made at the first call for this owner and key, and the same object afterwards.

    The owner is compared by identity and not kept alive. Of many keys only the latest stay.
    """
    made = _known.setdefault(owner, {})
    if key not in made:
        while len(made) >= MOST_PER_OWNER:
            made.pop(next(iter(made)))
        made[key] = build()
    return made[key]  # type: ignore[no-any-return]
