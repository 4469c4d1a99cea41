"""Corpora, good and bad: what is used, what is named and counted, what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sidecar_core.errors import SidecarError
from sidecar_core.experiments import corpus as module
from sidecar_core.experiments.corpus import Skipped, read_corpus, read_jsonl


def jsonl(folder: Path, *lines: object, name: str = "news.jsonl") -> Path:
    path = folder / name
    texts = (line if isinstance(line, str) else json.dumps(line) for line in lines)
    path.write_text("\n".join(texts) + "\n", "utf-8")
    return path


def test_text_and_article_are_both_taken_and_lines_without_id_are_named_by_number(tmp_path):
    path = jsonl(tmp_path, {"id": 7, "text": "One."}, {"article": "Two."}, {"id": "", "text": "3"})
    documents = read_corpus([path]).documents
    assert [(d.id, d.text) for d in documents] == [
        ("7", "One."),
        ("news:2", "Two."),
        ("news:3", "3"),
    ]


def test_bad_lines_are_named_by_file_and_line_and_the_good_ones_are_kept(tmp_path):
    path = jsonl(
        tmp_path,
        {"id": "a", "text": "Good."},
        "",
        "{not json",
        '["a list"]',
        {"id": "b", "title": "no text"},
        {"id": "c", "text": "  \n\t"},
        {"id": "d", "text": 5},
        {"id": "a", "text": "Another with the same id."},
        {"id": "e", "text": "Good as well."},
        "[" * 90_000,
        {"id": "f", "text": "\u2800\u3164"},
    )
    found = read_corpus([path])
    assert [d.id for d in found.documents] == ["a", "e"]
    assert found.skipped == (
        Skipped(f"{path}:2", "the line is empty"),
        Skipped(f"{path}:3", "the line is not JSON"),
        Skipped(f"{path}:4", "the line is not a JSON object"),
        Skipped(f"{path}:5", "the line has neither `text` nor `article`"),
        Skipped(f"{path}:6", "its text is empty"),
        Skipped(f"{path}:7", "its text is not a string"),
        Skipped(f"{path}:8", "duplicate id 'a'"),
        Skipped(f"{path}:10", "the line is not JSON"),
        Skipped(f"{path}:11", "its text is empty"),
    )


def test_a_line_that_is_not_utf8_is_skipped(tmp_path):
    path = tmp_path / "news.jsonl"
    path.write_bytes(b'{"text": "caf\xe9"}\n{"text": "cafe"}\n')
    found = read_corpus([path])
    assert [d.text for d in found.documents] == ["cafe"]
    assert found.skipped == (Skipped(f"{path}:1", "the line is not UTF-8 text"),)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_without_a_mark_is_skipped(tmp_path, encoding):
    (tmp_path / "a.txt").write_bytes("The harbour council agreed.".encode(encoding))
    (tmp_path / "b.jsonl").write_bytes('{"text": "The harbour"}\n'.encode(encoding))
    (tmp_path / "c.txt").write_text("Good.")
    found = read_corpus([tmp_path / "a.txt", tmp_path / "b.jsonl", tmp_path / "c.txt"])
    assert [d.text for d in found.documents] == ["Good."]
    assert {skipped.why.split(" ", 2)[2] for skipped in found.skipped} >= {"not UTF-8 text"}


def test_an_article_is_cut_at_max_chars_and_says_so(tmp_path):
    path = jsonl(tmp_path, {"text": "x" * 300_000}, {"text": "y" * 10})
    first, second = read_corpus([path], max_chars=10).documents
    assert (first.text, first.cut) == ("x" * 10, True)
    assert (second.text, second.cut) == ("y" * 10, False)


def test_one_enormous_line_is_passed_over_and_the_next_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MAX_BYTES", 1_000)
    path = jsonl(tmp_path, {"text": "x" * 5_000}, {"text": "Small."})
    found = read_corpus([path])
    assert [d.text for d in found.documents] == ["Small."]
    assert found.skipped == (Skipped(f"{path}:1", "the line is longer than 1,000 bytes"),)


def test_an_enormous_text_file_is_passed_over(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MAX_BYTES", 1_000)
    (tmp_path / "big.txt").write_text("x" * 1_001)
    (tmp_path / "small.txt").write_text("Small.")
    found = read_corpus([tmp_path / "big.txt", tmp_path / "small.txt"])
    assert [d.id for d in found.documents] == ["small"]
    assert found.skipped == (Skipped(f"{tmp_path / 'big.txt'}", "it is larger than 1,000 bytes"),)


def test_files_of_one_name_in_two_folders_are_two_articles_but_one_given_twice_is_one(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "news.txt").write_text(folder)
    one, other = tmp_path / "a" / "news.txt", tmp_path / "b" / "news.txt"
    assert [d.id for d in read_corpus([one, other]).documents] == ["news", other.as_posix()]
    found = read_corpus([one, other, other])
    assert [d.text for d in found.documents] == ["a", "b"]
    assert found.skipped == (Skipped(f"{other}", "duplicate id 'news'"),)


def test_lines_without_ids_of_files_of_one_name_are_articles_of_their_own(tmp_path):
    paths = []
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        paths.append(jsonl(tmp_path / folder, {"text": f"In {folder}."}))
    found = read_corpus(paths)
    assert [d.text for d in found.documents] == ["In a.", "In b."]
    assert [d.id for d in found.documents] == [f"{paths[0].stem}:1", f"{paths[1]}:1"]
    assert found.skipped == ()


def test_half_a_character_in_an_id_reaches_no_file(tmp_path):
    path = tmp_path / "news.jsonl"
    path.write_text('{"id": "a\\ud800b", "text": "One."}\n')
    (document,) = read_corpus([path]).documents
    assert document.id == "a b"


def test_the_limit_counts_articles_and_nothing_behind_the_last_is_looked_at(tmp_path):
    path = jsonl(tmp_path, "", {"text": "One."}, {"text": "Two."}, "{not json")
    found = read_corpus([path], limit=2)
    assert [d.text for d in found.documents] == ["One.", "Two."]
    assert len(found.skipped) == 1


def test_an_upload_is_read_like_a_file(tmp_path):
    path = jsonl(tmp_path, {"text": "One."}, "", {"article": "Two."})
    from_file = read_corpus([path])
    from_bytes = read_jsonl("news.jsonl", path.read_bytes())
    assert from_bytes.documents == from_file.documents
    assert [s.why for s in from_bytes.skipped] == [s.why for s in from_file.skipped]


@pytest.mark.parametrize("content", ["", "\n\n", '{"title": "no text"}\n'])
def test_a_corpus_without_an_article_is_refused(tmp_path, content):
    path = tmp_path / "empty.jsonl"
    path.write_text(content)
    with pytest.raises(SidecarError, match="No article"):
        read_corpus([path])


def test_files_of_another_kind_or_that_are_not_there_are_refused(tmp_path):
    (tmp_path / "table.csv").write_text("text\n")
    with pytest.raises(SidecarError, match=r"neither a \.txt nor a \.jsonl"):
        read_corpus([tmp_path / "table.csv"])
    with pytest.raises(SidecarError, match="Cannot read"):
        read_corpus([tmp_path / "missing.jsonl"])


@pytest.mark.parametrize("limits", [{"limit": 0}, {"limit": -1}, {"max_chars": 0}])
def test_limits_out_of_range_are_refused(tmp_path, limits):
    with pytest.raises(SidecarError, match="must be"):
        read_corpus([jsonl(tmp_path, {"text": "One."})], **limits)
