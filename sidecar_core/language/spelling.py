"""What a hashtag cannot hold, written so that it can, in tags and in the texts beside them alike.

HTML entities become their characters, thousands lose their separators ("1,000" is 1000), a decimal
mark becomes an underscore ("1.5C" is 1_5C: hashtags may hold one), any other underscore a space,
"5 %" is "5 percent", "-5" is "minus 5", and C++, C# and Disney+ are Cpp, Csharp and Disneyplus.
"""

from __future__ import annotations

import html
import re

_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,30});")
_MARKS = frozenset('"“”[],;#')
"""Characters that a list is made of: an entity for one of these is no part of the list."""

_SPACES = " \u00a0\u2009\u202f"
_NUMBER = re.compile(
    rf"(?<!\w)\d+(?:[.,'’\u066b\u066c]\d+)+|(?<!\w)\d{{1,3}}(?:[{_SPACES}]\d{{3}})+(?!\d)"
)
_SIGNS = (
    (re.compile(r"(?<!\d)_|_(?!\d)"), " "),
    (re.compile(r"(?<=\d)\s?[%٪％]"), " percent"),
    (re.compile(r'(?<![^\s"“\[(,])[-−](?=\d)'), "minus "),
    (re.compile(r"(?<=\w)\+\+(?!\+)"), "pp"),
    (re.compile(r"(?<![^\W_])([A-Za-z])#(?!\w)"), r"\1sharp"),
    (re.compile(r"(?<=[^\W\d_]{2})\+(?![\w+])"), "plus"),
)


def spelled(text: str) -> str:
    """`text` with all of the above written out."""
    text = _NUMBER.sub(_number, unescaped(text))
    for sign, words in _SIGNS:
        text = sign.sub(words, text)
    return text


def unescaped(text: str) -> str:
    """`text` with HTML entities as their characters, also where they were escaped twice."""
    for _ in range(2):
        if "&" not in text:
            break
        text = _ENTITY.sub(_character, text)
    return text


def _character(entity: re.Match[str]) -> str:
    character = html.unescape(entity[0])
    return " " if character in _MARKS else character


def _number(found: re.Match[str]) -> str:
    """Digits without separators of thousands, and "_" where a decimal mark (or a date's) stood."""
    first, *rest = re.split(r"\D", found[0])
    separators = re.sub(r"\d", "", found[0])
    decimals = ""
    if len(set(separators)) == 2 and separators.count(separators[-1]) == 1:
        decimals, separators = "_" + rest.pop(), separators[:-1]  # "1,234.5"
    grouped = all(len(group) == 3 for group in rest) or (
        set(separators) == {","} and len(rest[-1]) == 3 and {len(g) for g in rest[:-1]} == {2}
    )
    if grouped and len(first) <= 3 and first.strip("0٠") and len(set(separators)) == 1:
        return first + "".join(rest) + decimals
    return "_".join((first, *rest)) + decimals
