"""Files appear whole or not at all; text is safe to print; close names are found."""

from __future__ import annotations

import os
import re

import pytest

from lighttouch.estimators.streaming.reading import refuse_unreadable
from lighttouch.files import replacing, write_whole
from lighttouch.text import closest_name, did_you_mean, printable, readable_size


def test_a_file_is_replaced_whole(tmp_path):
    path = tmp_path / "file.txt"
    write_whole(path, "größer\n")
    assert path.read_bytes() == "größer\n".encode()
    write_whole(path, b"second")
    assert path.read_bytes() == b"second" and [each.name for each in tmp_path.iterdir()] == [
        "file.txt"
    ]


def test_a_new_file_has_the_permissions_of_any_other(tmp_path):
    (tmp_path / "plain").write_text("")
    write_whole(tmp_path / "whole", "")
    assert (tmp_path / "whole").stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.parametrize("problem", [OSError, KeyboardInterrupt])
def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path, problem):
    path = tmp_path / "file.txt"
    write_whole(path, "old")
    with pytest.raises(problem), replacing(path) as beside:
        beside.write_text("half of")
        raise problem
    assert path.read_text() == "old" and [each.name for each in tmp_path.iterdir()] == ["file.txt"]


def test_a_rename_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "file.txt"
    write_whole(path, "old")

    def refuse(*_):
        raise OSError("the disk is full")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match="full"):
        write_whole(path, "new")
    assert path.read_text() == "old" and [each.name for each in tmp_path.iterdir()] == ["file.txt"]


def test_control_and_direction_characters_are_spelled_out():
    assert printable("a\x1b[31m\u202eb\n") == "a\\x1b[31m\\u202eb\\n"
    assert printable("a\x07\nb", line_breaks=True) == "a\\x07\nb"
    assert printable("größe <b>") == "größe <b>"


def test_close_names():
    assert closest_name("agee", ["sex", "age"]) == "age"
    assert closest_name("zzz", ["sex", "age"]) is None
    assert did_you_mean("agee", ["age"]) == "; did you mean 'age'?"
    assert did_you_mean("zzz", ["age"]) == ""


def test_a_file_that_is_not_there_is_told_from_its_neighbour_with_the_folder(tmp_path):
    (tmp_path / "part-1.parquet").write_text("")
    near = re.escape(f"did you mean {str(tmp_path / 'part-1.parquet')!r}?")
    with pytest.raises(OSError, match=near):
        refuse_unreadable(tmp_path / "part1.parquet")


@pytest.mark.parametrize(
    ("size", "words"), [(512, "512 bytes"), (2048, "2.0 KiB"), (3.5 * 2**40, "3.5 TiB")]
)
def test_sizes_in_words(size, words):
    assert readable_size(size) == words
