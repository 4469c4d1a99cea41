"""Articles for an experiment, from .txt files and .jsonl files, and what could not be used of them.

A .txt file is one article. A .jsonl file holds one JSON object per line with the text in `text` or
`article` and, if it likes, an `id`. Every article is cut to its first `max_chars` characters, which
is counted. What is not an article is skipped, named by file and line, and counted: empty lines,
lines that are not UTF-8 or not a JSON object, missing or blank texts, ids that came before, and
files or lines of more than `MAX_BYTES`. A file that cannot be read at all, and a corpus without a
single article, are refused.
"""

from __future__ import annotations

import importlib
import io
import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from sidecar_core.errors import SidecarError, first_line
from sidecar_core.files import decode, file_errors
from sidecar_core.prompts import clean, is_blank
from sidecar_core.settings import MAX_ARTICLE_CHARS

MAX_BYTES = 4_000_000
"""Longer lines, and longer .txt files, are passed over without being read into memory."""

MAX_CHARS = 3_000
"""How much of an article is used unless something else is asked for; the posts' figure."""


@dataclass(frozen=True, slots=True)
class Document:
    """One article; `cut` says whether it was longer."""

    id: str
    text: str
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Skipped:
    """Something that was not measured: where it stands, and why."""

    where: str
    why: str


@dataclass(frozen=True, slots=True)
class Corpus:
    """Articles in the order in which they were read, and what was passed over between them."""

    documents: tuple[Document, ...]
    skipped: tuple[Skipped, ...] = ()


def read_corpus(
    files: Sequence[str | Path], *, limit: int | None = None, max_chars: int = MAX_CHARS
) -> Corpus:
    """The articles of `files`, at most `limit`; what stands behind the last one is not looked at.

    Raises SidecarError for limits out of range, a file of another kind or that cannot be read, and
    for files without any article.
    """
    _check(limit, max_chars)
    return _collect(_of_files([Path(file) for file in files]), limit, max_chars)


def read_jsonl(
    name: str, data: bytes, *, limit: int | None = None, max_chars: int = MAX_CHARS
) -> Corpus:
    """The same for the contents of one .jsonl file, such as an upload; `name` is for messages."""
    _check(limit, max_chars)
    return _collect(_of_lines(Path(name), io.BytesIO(data)), limit, max_chars)


@dataclass(frozen=True, slots=True)
class _Entry:
    """One article as it was found. `fallback` is a second id where the first one is taken."""

    where: str
    id: str
    text: str
    fallback: str = ""


def _collect(entries: Iterator[_Entry | Skipped], limit: int | None, max_chars: int) -> Corpus:
    documents: dict[str, Document] = {}
    skipped: list[Skipped] = []
    for entry in entries:
        if isinstance(entry, Skipped):
            skipped.append(entry)
            continue
        text = clean(entry.text)
        name, fallback = clean(entry.id), clean(entry.fallback)
        key = name if name not in documents else fallback
        if is_blank(text):
            skipped.append(Skipped(entry.where, "its text is empty"))
        elif not key or key in documents:
            skipped.append(Skipped(entry.where, f"duplicate id {name!r}"))
        else:
            documents[key] = Document(key, text[:max_chars], len(text) > max_chars)
        if len(documents) == limit:
            break
    if not documents:
        reason = f" ({skipped[0].where}: {skipped[0].why})" if skipped else ""
        raise SidecarError(
            f"No article found{reason}; give .txt files, or .jsonl files with a `text` or "
            "`article` in every line."
        )
    return Corpus(tuple(documents.values()), tuple(skipped))


def _of_files(paths: Sequence[Path]) -> Iterator[_Entry | Skipped]:
    for path in paths:
        if path.suffix.lower() not in (".txt", ".jsonl"):
            raise SidecarError(f"{path} is neither a .txt nor a .jsonl file; give one of these.")
        with file_errors("read", path), path.open("rb") as file:
            if path.suffix.lower() == ".jsonl":
                yield from _of_lines(path, file)
            else:
                yield _of_text(path, file.read(MAX_BYTES + 1))


def _of_text(path: Path, data: bytes) -> _Entry | Skipped:
    if len(data) > MAX_BYTES:
        return Skipped(str(path), f"it is larger than {MAX_BYTES:,} bytes")
    try:
        text = decode(data)
    except UnicodeError:
        return Skipped(str(path), "it is not UTF-8 text")
    return _Entry(str(path), path.stem, text, path.as_posix())


def _of_lines(path: Path, file: BinaryIO) -> Iterator[_Entry | Skipped]:
    number = 0
    while line := file.readline(MAX_BYTES + 1):
        number += 1
        where = f"{path}:{number}"
        if len(line) > MAX_BYTES:
            while line and not line.endswith(b"\n"):
                line = file.readline(MAX_BYTES)
            yield Skipped(where, f"the line is longer than {MAX_BYTES:,} bytes")
        elif not line.strip():
            yield Skipped(where, "the line is empty")
        else:
            yield _of_line(where, f"{path.stem}:{number}", line)


def _of_line(where: str, default_id: str, line: bytes) -> _Entry | Skipped:
    try:
        record = json.loads(decode(line))
    except UnicodeError:
        return Skipped(where, "the line is not UTF-8 text")
    except (ValueError, RecursionError):
        return Skipped(where, "the line is not JSON")
    if not isinstance(record, dict):
        return Skipped(where, "the line is not a JSON object")
    text = record.get("text", record.get("article"))
    if text is None:
        return Skipped(where, "the line has neither `text` nor `article`")
    if not isinstance(text, str):
        return Skipped(where, "its text is not a string")
    given = record.get("id")
    is_id = isinstance(given, str | int) and not isinstance(given, bool) and str(given).strip()
    if is_id:
        return _Entry(where, str(given).strip(), text)
    return _Entry(where, default_id, text, where)


def _check(limit: int | None, max_chars: int) -> None:
    if limit is not None and limit < 1:
        raise SidecarError(f"The limit is {limit}; it must be 1 article or more.")
    if not 1 <= max_chars <= MAX_ARTICLE_CHARS:
        raise SidecarError(
            f"--max-chars is {max_chars}; it must be from 1 to {MAX_ARTICLE_CHARS:,}."
        )


# --- the corpus of the posts ---------------------------------------------------------------------

DATASET = ("abisee/cnn_dailymail", "3.0.0")
"""CNN/DailyMail on the Hugging Face Hub: name and version."""

TEST_ARTICLES = 11_490


def cnn_dailymail(count: int) -> Iterator[dict[str, str]]:
    """The first `count` articles of the test split, as {"id", "text"}.

    The library `datasets` is not among the requirements, since nothing else needs it.

    Raises SidecarError where the library is missing or the Hub cannot be reached.
    """
    if not 1 <= count <= TEST_ARTICLES:
        raise SidecarError(f"The count is {count}; it must be from 1 to {TEST_ARTICLES:,}.")
    try:
        datasets = importlib.import_module("datasets")
    except ImportError as error:
        raise SidecarError(
            "Fetching articles needs the library datasets; run `pip install datasets`, or give a "
            ".jsonl file of your own."
        ) from error
    try:
        rows = datasets.load_dataset(*DATASET, split="test", streaming=True)
        for row in itertools.islice(rows, count):
            yield {"id": str(row["id"]), "text": str(row["article"])}
    except Exception as error:  # the library passes on whatever its network stack raises
        why = first_line(error)
        raise SidecarError(
            f"{DATASET[0]} cannot be fetched from the Hugging Face Hub ({why}); check the network, "
            "or give a .jsonl file of your own."
        ) from error
