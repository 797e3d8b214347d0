"""Model files and checkpoints: a JSON header, plain arrays and a checksum; nothing in them is ever
executed.

Layout, little-endian: 8 bytes of signature, version (4 bytes), length of the header (8 bytes), the
header, the arrays one after the other, SHA-256 of everything before it (32 bytes). The header holds
a seal, an HMAC-SHA-256 of the rest. Its key is known, except that of the runs within a checkpoint,
which is made from the problem's own numbers, so that nobody without them can make one.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lighttouch.errors import ModelFileError
from lighttouch.files import intended, write_whole


@dataclass(frozen=True)
class Format:
    """What tells one kind of file from another."""

    noun: str
    signature: bytes
    version: int
    types: Mapping[str, int]  # of the elements of arrays, with their sizes in bytes
    remedy: str  # what to do about a damaged one
    key: bytes  # of the seal of the whole file: known to all, so it stops tools, not attackers


_DOUBLES = {"<f8": 8, "<i8": 8}
MODEL = Format("model", b"LTMODEL\n", 1, _DOUBLES, "save the model again", b"model")
CHECKPOINT = Format(
    "checkpoint",
    b"LTCHECK\n",
    1,
    _DOUBLES
    | {"<f4": 4, "<i4": 4, "<u8": 8, "<u4": 4, "<i2": 2, "<u2": 2, "|i1": 1, "|u1": 1, "|b1": 1},
    "delete it to begin anew",
    b"checkpoint",
)
_PREFIX = struct.Struct("<8sIQ")
_DIGEST = 32
_MARK = "__array__"
_SEAL = "seal"
_MOST_DIMENSIONS = 8
_MOST_ARRAYS = 100_000  # each takes microseconds and 100 bytes, also where it is empty

Key = Callable[[dict[str, Any]], bytes]


def write_state(
    path: str | os.PathLike[str], kind: str, state: dict[str, Any], form: Format = MODEL
) -> None:
    """Write a tree of plain values and arrays; the file appears whole or not at all."""
    place = _path(path, form)
    content = packed(kind, state, form, form.key)
    try:
        write_whole(place, content + hashlib.sha256(content).digest())
    except OSError as error:
        raise ModelFileError(
            f"{intended(place)} cannot be written: {error.strerror or error}; what was there "
            "before is untouched"
        ) from None


def _path(path: object, form: Format) -> Path:
    if not isinstance(path, str | os.PathLike):
        raise ModelFileError(
            f"the {form.noun} must be named by a path, such as 'model.lt', got {path!r}"
        )
    return Path(path)


def packed(kind: str, state: dict[str, Any], form: Format, key: bytes | None = None) -> bytes:
    """The tree as bytes, without a checksum; with a key it is sealed."""
    arrays: list[np.ndarray[Any, Any]] = []
    tree = _flattened(state, arrays, form)
    described = [{"type": a.dtype.str, "shape": list(a.shape)} for a in arrays]
    header = {"kind": kind, "state": tree, "arrays": described}
    data = b"".join(a.tobytes() for a in arrays)
    if key is not None:
        header[_SEAL] = _sealed(header, data, key)
    text = _text(header)
    return _PREFIX.pack(form.signature, form.version, len(text)) + text + data


def _text(header: dict[str, Any]) -> bytes:
    return json.dumps(header, ensure_ascii=True, separators=(",", ":")).encode("ascii")


def _sealed(header: dict[str, Any], data: Any, key: bytes) -> str:
    seal = hmac.new(key, _text({k: v for k, v in header.items() if k != _SEAL}), "sha256")
    seal.update(data)
    return seal.hexdigest()


def read_state(path: str | os.PathLike[str], form: Format = MODEL) -> tuple[str, dict[str, Any]]:
    """The kind and the tree of a file; any damage is a ModelFileError."""
    place = _path(path, form)
    try:
        content = place.read_bytes()
    except OSError as error:
        raise ModelFileError(f"{place} cannot be read: {error.strerror or error}") from None
    try:
        _check_whole(content, form)
        return unpacked(memoryview(content)[:-_DIGEST], form, lambda _: form.key)
    except ModelFileError as error:
        raise ModelFileError(f"{place}: {error}") from None
    except Exception as error:
        raise ModelFileError(
            f"{place} is damaged: {type(error).__name__} while reading its header"
        ) from None


def _check_whole(content: bytes, form: Format) -> None:
    if len(content) < _PREFIX.size + _DIGEST:
        raise ModelFileError(
            f"this is not a {form.noun} file, or it is cut short: {len(content)} bytes"
        )
    signature, version, _ = _PREFIX.unpack_from(content)
    if signature != form.signature:
        raise ModelFileError(f"this is not a lighttouch {form.noun} file")
    if version != form.version:
        raise ModelFileError(
            f"it has format version {version}; this lighttouch reads version {form.version}. "
            "Update lighttouch"
        )
    if hashlib.sha256(memoryview(content)[:-_DIGEST]).digest() != content[-_DIGEST:]:
        raise ModelFileError(
            f"its checksum does not match: the file is damaged or incomplete; {form.remedy}"
        )


def unpacked(body: memoryview, form: Format, key: Key | None = None) -> tuple[str, dict[str, Any]]:
    """What `packed` was given. `key` is asked for the key of the seal, given the tree; it may raise
    what the tree deserves.
    """
    _, _, length = _PREFIX.unpack_from(body)
    if length > len(body) - _PREFIX.size:
        raise ModelFileError("its header claims more than the file holds")
    header = json.loads(bytes(body[_PREFIX.size : _PREFIX.size + length]).decode("ascii"))
    data = body[_PREFIX.size + length :]
    arrays = _arrays(header["arrays"], data, form)
    kind, state = header["kind"], _restored(header["state"], arrays)
    if not isinstance(kind, str) or not isinstance(state, dict):
        raise ModelFileError(f"its header is not that of a {form.noun}")
    if key is not None and (_SEAL in header or form is not MODEL):  # models of 0.1 had none
        expected = _sealed(header, data, key(state))
        if not hmac.compare_digest(str(header.get(_SEAL)).encode(), expected.encode()):
            raise ModelFileError(
                f"its seal does not match: it was changed after lighttouch wrote it; {form.remedy}"
            )
    return kind, state


def _arrays(
    described: list[dict[str, Any]], data: memoryview, form: Format
) -> list[np.ndarray[Any, Any]]:
    """Every array the header names; its size is checked before any memory is taken."""
    if len(described) > _MOST_ARRAYS:
        raise ModelFileError(
            f"its header names {len(described):,} arrays, which no {form.noun} has"
        )
    found, offset = [], 0
    for each in described:
        shape = [int(size) for size in each["shape"]]
        if (
            each["type"] not in form.types
            or len(shape) > _MOST_DIMENSIONS
            or any(size < 0 for size in shape)
        ):
            raise ModelFileError("its header describes an impossible array")
        count = 1
        for size in shape:
            count *= size
        needed = count * form.types[each["type"]]
        if needed > len(data) - offset:
            raise ModelFileError("its header claims more numbers than the file holds")
        found.append(
            np.frombuffer(data[offset : offset + needed], dtype=each["type"]).reshape(shape).copy()
        )
        offset += needed
    if offset != len(data):
        raise ModelFileError("it holds bytes that its header does not describe")
    return found


def _flattened(value: object, arrays: list[np.ndarray[Any, Any]], form: Format) -> Any:
    if isinstance(value, np.ndarray):
        kind = value.dtype.str
        if kind not in form.types:
            kind = "<i8" if value.dtype.kind in "iub" else "<f8"
        if value.dtype.kind not in "iubf":
            raise ModelFileError(f"an array of {value.dtype} cannot be saved")
        arrays.append(np.asarray(value, dtype=kind, order="C"))
        return {_MARK: len(arrays) - 1}
    if isinstance(value, dict):
        return {str(key): _flattened(part, arrays, form) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_flattened(part, arrays, form) for part in value]
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
