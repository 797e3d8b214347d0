"""Model files: a JSON header, plain arrays and a checksum; nothing in them is ever executed.

Layout, little-endian: 8 bytes of signature, version (4 bytes), length of the header (8 bytes), the
header, the arrays one after the other, SHA-256 of everything before it (32 bytes).
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np

from lighttouch.errors import ModelFileError
from lighttouch.files import write_whole

SIGNATURE = b"LTMODEL\n"
VERSION = 1
_PREFIX = struct.Struct("<8sIQ")
_DIGEST = 32
_TYPES = {"<f8": 8, "<i8": 8}
_MARK = "__array__"
_MOST_DIMENSIONS = 8


def write_state(path: str | os.PathLike[str], kind: str, state: dict[str, Any]) -> None:
    """Write a tree of plain values and arrays; the file appears whole or not at all."""
    arrays: list[np.ndarray[Any, Any]] = []
    tree = _flattened(state, arrays)
    header = {
        "kind": kind,
        "state": tree,
        "arrays": [{"type": a.dtype.str, "shape": list(a.shape)} for a in arrays],
    }
    text = json.dumps(header, ensure_ascii=True, separators=(",", ":")).encode("ascii")
    prefix = _PREFIX.pack(SIGNATURE, VERSION, len(text))
    body = b"".join([prefix, text, *(a.tobytes() for a in arrays)])
    place = Path(path)
    try:
        write_whole(place, body + hashlib.sha256(body).digest())
    except OSError as error:
        raise ModelFileError(
            f"{place} cannot be written: {error.strerror or error}; what was there before is "
            "untouched"
        ) from None


def read_state(path: str | os.PathLike[str]) -> tuple[str, dict[str, Any]]:
    """The kind and the tree of a model file; any damage is a ModelFileError."""
    place = Path(path)
    try:
        content = place.read_bytes()
    except OSError as error:
        raise ModelFileError(f"{place} cannot be read: {error.strerror or error}") from None
    try:
        return _parsed(content)
    except ModelFileError as error:
        raise ModelFileError(f"{place}: {error}") from None
    except Exception as error:
        raise ModelFileError(
            f"{place} is damaged: {type(error).__name__} while reading its header"
        ) from None


def _parsed(content: bytes) -> tuple[str, dict[str, Any]]:
    if len(content) < _PREFIX.size + _DIGEST:
        raise ModelFileError(f"this is not a model file, or it is cut short: {len(content)} bytes")
    signature, version, length = _PREFIX.unpack_from(content)
    if signature != SIGNATURE:
        raise ModelFileError("this is not a lighttouch model file")
    if version != VERSION:
        raise ModelFileError(
            f"it has format version {version}; this lighttouch reads version {VERSION}. "
            "Update lighttouch"
        )
    body = memoryview(content)[:-_DIGEST]
    if hashlib.sha256(body).digest() != content[-_DIGEST:]:
        raise ModelFileError(
            "its checksum does not match: the file is damaged or incomplete; save the model again"
        )
    if length > len(body) - _PREFIX.size:
        raise ModelFileError("its header claims more than the file holds")
    header = json.loads(bytes(body[_PREFIX.size : _PREFIX.size + length]).decode("ascii"))
    arrays = _arrays(header["arrays"], body[_PREFIX.size + length :])
    kind, state = header["kind"], _restored(header["state"], arrays)
    if not isinstance(kind, str) or not isinstance(state, dict):
        raise ModelFileError("its header is not that of a model")
    return kind, state


def _arrays(described: list[dict[str, Any]], data: memoryview) -> list[np.ndarray[Any, Any]]:
    """Every array the header names; its size is checked before any memory is taken."""
    found, offset = [], 0
    for each in described:
        shape = [int(size) for size in each["shape"]]
        if (
            each["type"] not in _TYPES
            or len(shape) > _MOST_DIMENSIONS
            or any(size < 0 for size in shape)
        ):
            raise ModelFileError("its header describes an impossible array")
        count = 1
        for size in shape:
            count *= size
        needed = count * _TYPES[each["type"]]
        if needed > len(data) - offset:
            raise ModelFileError("its header claims more numbers than the file holds")
        found.append(
            np.frombuffer(data[offset : offset + needed], dtype=each["type"]).reshape(shape).copy()
        )
        offset += needed
    if offset != len(data):
        raise ModelFileError("it holds bytes that its header does not describe")
    return found


def _flattened(value: object, arrays: list[np.ndarray[Any, Any]]) -> Any:
    if isinstance(value, np.ndarray):
        kind = "<i8" if value.dtype.kind in "iub" else "<f8"
        if value.dtype.kind not in "iubf":
            raise ModelFileError(f"an array of {value.dtype} cannot be saved")
        arrays.append(np.ascontiguousarray(value, dtype=kind))
        return {_MARK: len(arrays) - 1}
    if isinstance(value, dict):
        return {str(key): _flattened(part, arrays) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_flattened(part, arrays) for part in value]
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise ModelFileError(f"a value of type {type(value).__name__} cannot be saved: {value!r}")


def _restored(value: object, arrays: list[np.ndarray[Any, Any]]) -> Any:
    if isinstance(value, dict):
        if set(value) == {_MARK}:
            return arrays[value[_MARK]]
        return {key: _restored(part, arrays) for key, part in value.items()}
    return [_restored(part, arrays) for part in value] if isinstance(value, list) else value
