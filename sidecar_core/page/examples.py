"""What a visitor can start from: the example articles, and files of their own."""

from __future__ import annotations

from sidecar_core.errors import SidecarError
from sidecar_core.examples import Example as Example
from sidecar_core.examples import load_examples as load_examples
from sidecar_core.prompts import is_blank
from sidecar_core.settings import MAX_ARTICLE_CHARS

FILE_TYPES = [".txt", ".md"]


def read_upload(data: bytes) -> str:
    """The text of an uploaded file. Raises SidecarError for one that is empty, not text or too
    long: what is on the page then stays there."""
    if len(data) > 4 * MAX_ARTICLE_CHARS:
        raise SidecarError(
            f"The file has {len(data):,} bytes; an article may have at most "
            f"{MAX_ARTICLE_CHARS:,} characters. Upload a shorter one."
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SidecarError(
            "The file is not UTF-8 text; save it as a plain .txt or .md file."
        ) from error
    if is_blank(text):
        raise SidecarError("The file is empty; the article on the page stays. Upload another one.")
    return text
