"""What a task raised somewhere else, raised again here with its own message."""

from __future__ import annotations

import pickle
import traceback
from dataclasses import dataclass
from typing import NoReturn

from lighttouch.errors import EngineError


class RemoteTracebackError(Exception):
    """Where in the other process it was; the cause of what is raised here."""

    def __str__(self) -> str:
        return f"in another process:\n{self.args[0]}"


@dataclass(frozen=True)
class Failure:
    """An exception on its way back."""

    pickled: bytes | None
    words: str
    where: str

    def reraise(self) -> NoReturn:
        error: BaseException = EngineError(self.words)
        if self.pickled is not None:
            error = pickle.loads(self.pickled)
        raise error from RemoteTracebackError(self.where)


def failure_of(error: BaseException) -> Failure:
    """The exception, if it survives the way; else its name and message."""
    words = f"{type(error).__name__}: {error}"
    where = "".join(traceback.format_exception(error))
    try:
        pickled = pickle.dumps(error)
        pickle.loads(pickled)
    except Exception:
        return Failure(None, words, where)
    return Failure(pickled, words, where)
