"""Sidecar tasks: what the draft model does on the side once the summary is finished.

A task is an instruction (the suffix), a few forced tokens that open the answer (the cue), and the
way to read what the model then writes. `parse` and `is_done` get the raw output behind the cue.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from sidecar_core.errors import SidecarError, quoted
from sidecar_core.language.spelling import spelled, unescaped
from sidecar_core.prompts import clean
from sidecar_core.settings import MAX_TASK_CHARS, RunSettings
from sidecar_core.text import has_half_characters

MAX_TAGS = 5
FREE = "free"
"""Name of the task in a user's own words."""


@dataclass(frozen=True, slots=True)
class SidecarTask:
    """One side job.

    `suffix` goes behind the instruction of the draft's prompt; `cue` is text that the answer opens
    with; `parse` makes clean results of the raw output, finished or not; `is_done` says whether
    the output so far is complete; at most `max_tokens` are generated behind the cue.
    """

    name: str
    label: str
    suffix: str
    cue: str
    parse: Callable[[str], tuple[str, ...]]
    is_done: Callable[[str], bool]
    max_tokens: int


# --- lists of short items ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Items:
    """A list as the model wrote it: the items that are complete, and the one it may be writing."""

    complete: tuple[str, ...]
    last: str
    closed: bool
    quoted: bool

    @property
    def usable(self) -> tuple[str, ...]:
        """All items but an unfinished one (an open quotation mark says that it is unfinished)."""
        return self.complete if self.quoted else (*self.complete, self.last)


_SEPARATORS = re.compile(r'(?:["“”，、;\n•|`]|(?<!\d),|,(?!\d))+|(?<!\w)#')
"""Between the items of a list. A comma within a number is none, and no "#" within a word."""

_LISTED = re.compile(r"""\s*(?:["“'#•`\[]|[-*+]\s|\d+[.)]\s)""")
"""How a line begins that goes on with a list."""


def _items(raw: str, spell: Callable[[str], str] = unescaped) -> _Items:
    """Splits a list of any form: JSON, quoted, "#a #b", commas, lines with bullets or numbers;
    `spell` is applied to it first."""
    text = re.sub(r"\\u([0-9a-fA-F]{4})", lambda match: chr(int(match[1], 16)), raw)
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    text = spell(re.sub(r"\\.?", " ", text))
    before, bracket, behind = text.partition("[")
    if bracket and not re.search(r'["“#,]', before):
        text = behind
    text, closing, _ = text.partition("]")
    if not closing:
        text = _without_prose(text)
    quoted = bool(re.search(r'["“”]', text))
    if not quoted and re.search(r"(?:^|[^\w&])#\w|\w#\w", text):
        return _hashed(text, bool(closing), raw[-1:])
    parts = [_without_bullet(part) for part in _SEPARATORS.split(text)]
    complete, last = (parts, "") if closing else (parts[:-1], parts[-1])
    return _Items(tuple(complete), last, bool(closing), quoted)


def _hashed(text: str, closed: bool, end: str) -> _Items:
    """A list of "#a #b". What stands between the tags is none, but for a word or two at the very
    beginning: the first tag, whose "#" the cue may have written."""
    before, _, tags = text.partition("#")
    opening = re.fullmatch(r"([^\s:.!?]+(?: [^\s:.!?]+)?)[\s,;]*", before)
    found = re.findall(r"[^\s#,;，、]+", " ".join(re.findall(r"#\s*([^\s#,;，、]+)", "#" + tags)))
    items = [*([_without_bullet(opening[1])] if opening else []), *found]
    unfinished = not closed and not re.search(r"[\s,;，、#]$", text) and text[-1:] == end
    if unfinished and items:
        return _Items(tuple(items[:-1]), items[-1], closed, quoted=False)
    return _Items(tuple(items), "", closed, quoted=False)


def _without_prose(text: str) -> str:
    """An unclosed list up to where prose begins: a line that goes on with no list, or a sentence
    behind the last item."""
    kept: list[str] = []
    for line in text.splitlines(keepends=True):
        so_far = "".join(kept)
        if so_far.strip() and line.strip() and not _LISTED.match(line):
            inline = bool(re.search(r'["“”,，、;#]', so_far.lstrip("-*#\n ")))
            goes_on = so_far.rstrip().endswith((",", "，", "、", ";"))
            blank = bool(re.search(r"\n\s*\n\s*$", so_far))
            if blank or (inline and not goes_on) or _LISTED.match(so_far):
                break
        kept.append(line)
    return _SENTENCE.sub(r"\1", "".join(kept))


_SENTENCE = re.compile(
    r"((?:^|[,;#\n])[^,;.\n]*[^\W\d_]{3})\.[ \t]+[A-Z][^\s,;]*(?:[ \t]+[^\s,;]+){2,}.*\Z", re.DOTALL
)
"""An item that ends with a full stop, and a sentence behind it."""


def _without_bullet(part: str) -> str:
    return re.sub(r"^\s*(?:[-*+]|\d+[.)])\s+", "", part)


def _tag(item: str) -> str:
    """A tag in its one form: lower case, letters and digits of any script, hyphens between words.

    "#ClimateChange" and "climate change" both become "climate-change". "" where nothing is left, or
    no letter: digits alone are no hashtag. Numbers are spelled so that they keep their meaning
    (`language.spelling`).
    """
    item = unicodedata.normalize("NFC", item.strip())
    if not re.search(r"\s", item):
        item = _split_words(item)
    kept: list[str] = []
    for character in item.replace("İ", "i").lower():
        category = unicodedata.category(character)
        marked = category[0] == "M" and "".join(kept[-1:]).strip("-")  # a mark on something
        if category[0] in "LN" or (marked and character != "\ufe0f"):
            kept.append(character)
        elif character not in "'’." and category[0] not in "MC":
            kept.append(character if character == "_" else "-")  # "_" is a decimal mark
    tag = re.sub("-+", "-", "".join(kept)).strip("-")
    usable = any(map(str.isalpha, tag)) and not re.search(r"(?:^|-)0{2,}(?:-|$)", tag)
    return tag if usable and tag.count("-") < 6 and len(tag) <= 60 else ""  # longer: a sentence


def _split_words(run: str) -> str:
    """Hyphens into words run together: "AISafetyRules" becomes "AI-Safety-Rules"."""
    parts = []
    for before, here, behind in zip(" " + run, run, run[1:] + " ", strict=False):
        starts = here.isupper() and (before.islower() or (before.isupper() and behind.islower()))
        parts.append("-" + here if starts else here)
    return "".join(parts)


def _loops(tag: str) -> bool:
    """Whether a tag goes round in itself: "heat-pump-heat-pump", "car-car-car" and "热泵热泵热泵"
    do; "face-to-face", "bora-bora" and "new-york-new-jersey" do not."""
    return bool(
        re.search(r"(?:^|-)([^-]+(?:-[^-]+)+)-\1(?:-|$)", tag)
        or re.search(r"(?:^|-)([^-]+)-\1-\1(?:-|$)", tag)
        or re.search(r"([^\W\d_]{2,})\1\1", tag)
    )


def _distinct(items: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(item for item in items if item))


def parse_tags(raw: str) -> tuple[str, ...]:
    """At most five distinct tags: hyphenated lower case without "#" and punctuation."""
    tags = map(_tag, _items(raw, spelled).usable)
    return _distinct(tuple(tag for tag in tags if not _loops(tag)))[:MAX_TAGS]


def tags_are_done(raw: str) -> bool:
    """At the closing bracket, at the fifth distinct tag, or at the first one that repeats another
    or itself."""
    items = _items(raw, spelled)
    tags = [tag for tag in map(_tag, items.complete) if tag]
    repeats = len(set(tags)) < len(tags) or any(map(_loops, tags))
    return items.closed or len(tags) >= MAX_TAGS or repeats


def _phrase(text: str) -> str:
    """Plain words: without Markdown marks, quotation marks and white space around them."""
    return re.sub(r"\s+", " ", text).lstrip("#").strip(" \t\"'“”„«»*_`-:.").lstrip("# ")


def parse_keywords(raw: str) -> tuple[str, ...]:
    """At most six distinct phrases."""
    phrases = map(_phrase, _items(_block(raw)).usable)
    first_forms: dict[str, str] = {}
    for phrase in filter(None, phrases):
        first_forms.setdefault(phrase.lower(), phrase)
    return tuple(first_forms.values())[:6]


def keywords_are_done(raw: str) -> bool:
    """At the end of the list, at six phrases, or at the first one that repeats."""
    block = _block(raw)
    items = _items(block)
    phrases = [phrase.lower() for phrase in map(_phrase, items.complete) if phrase]
    ended = items.closed or len(block) < len(raw.lstrip())
    return ended or len(phrases) >= 6 or len(set(phrases)) < len(phrases)


def _block(raw: str) -> str:
    """The line with the list, or the lines of a list with one phrase in each."""
    text = raw.lstrip()
    line = text.partition("\n")[0]
    return line if re.search("[,，、;]", line) else re.split(r"\n\s*\n", text)[0]


# --- lines and texts --------------------------------------------------------------------------


def parse_line(raw: str) -> tuple[str, ...]:
    """The first line that holds something."""
    line = _phrase(raw.strip().partition("\n")[0])
    return (line,) if line else ()


def line_is_done(raw: str) -> bool:
    """At the end of the first line that holds something."""
    return "\n" in raw.lstrip()


def parse_category(raw: str) -> tuple[str, ...]:
    """The first word or so of the first line: what stands before any punctuation."""
    line = "".join(parse_line(raw))
    word = _phrase(re.split(r"[,.;:(/|]", line)[0])
    return (word.lower(),) if word else ()


def category_is_done(raw: str) -> bool:
    return bool(re.search(r"\w\s*[\n,.;:(/|]", raw))


def parse_text(raw: str) -> tuple[str, ...]:
    """The whole text as it is."""
    return (raw.strip(),) if raw.strip() else ()


def text_is_done(raw: str) -> bool:
    """Only the model or the token limit ends it."""
    return False


def paragraph_is_done(raw: str) -> bool:
    """At the first empty line behind some text."""
    return bool(re.search(r"\S[^\S\n]*\n\s*\n", raw))


HASHTAGS = SidecarTask(
    name="hashtags",
    label="Hashtags",
    suffix=" After the summary, output 3-5 short topical hashtags for the summary, "
    "as a JSON array of strings.",
    cue='\n\nHashtags: ["#',
    parse=parse_tags,
    is_done=tags_are_done,
    max_tokens=48,
)

HEADLINE = SidecarTask(
    name="headline",
    label="Headline",
    suffix=" After the summary, output one newspaper headline of at most ten words for the "
    "summary.",
    cue="\n\nHeadline:",
    parse=parse_line,
    is_done=line_is_done,
    max_tokens=32,
)

KEYWORDS = SidecarTask(
    name="keywords",
    label="Keywords",
    suffix=" After the summary, output the 3-6 most important keywords of the summary, "
    "separated by commas.",
    cue="\n\nKeywords:",
    parse=parse_keywords,
    is_done=keywords_are_done,
    max_tokens=48,
)

CATEGORY = SidecarTask(
    name="category",
    label="Category",
    suffix=" After the summary, output one word that names its newspaper section, such as "
    "politics, business, science, sport or culture.",
    cue="\n\nSection:",
    parse=parse_category,
    is_done=category_is_done,
    max_tokens=8,
)

FRENCH = SidecarTask(
    name="french",
    label="French translation",
    suffix=" After the summary, translate the summary into French.",
    cue="\n\nEn français :\n",
    parse=parse_text,
    is_done=paragraph_is_done,
    max_tokens=192,
)

TASKS: Mapping[str, SidecarTask] = MappingProxyType(
    {task.name: task for task in (HASHTAGS, HEADLINE, KEYWORDS, CATEGORY, FRENCH)}
)
"""The tasks that can be chosen by name."""


def get_task(name: str) -> SidecarTask:
    """The task of that name. Raises SidecarError for any other."""
    if name not in TASKS:
        known = ", ".join((*TASKS, FREE))
        raise SidecarError(f"There is no task {quoted(name)}; choose one of {known}.")
    return TASKS[name]


def task_of(settings: RunSettings) -> SidecarTask:
    """The task that the settings name, or make of their own suffix and cue. Raises SidecarError."""
    if settings.task == FREE:
        return free_task(settings.task_suffix, settings.task_cue)
    return get_task(settings.task)


def named(task: SidecarTask) -> dict[str, Any]:
    """The settings that name this task: for one in a user's own words, the words."""
    own = {"task_suffix": task.suffix.strip(), "task_cue": task.cue.strip()}
    return {"task": task.name} | (own if task.name == FREE else {})


def check_tasks(tasks: Sequence[SidecarTask]) -> tuple[SidecarTask, ...]:
    """The same tasks, known to have different names, a suffix and a cue.

    Raises SidecarError where they have not, or where a text is too long.
    """
    for task in tasks:
        if not isinstance(task, SidecarTask):
            raise SidecarError(
                f"{quoted(task)} is no SidecarTask; give one such as HASHTAGS, or a name in "
                "RunSettings(task=…)."
            )
    if len({task.name for task in tasks}) < len(tasks):
        raise SidecarError("Two tasks have the same name; give each its own.")
    for task in tasks:
        if any(map(has_half_characters, (task.name, task.label, task.suffix, task.cue))):
            raise SidecarError(
                f"The task {task.name!r} contains half a character (a lone surrogate); type its "
                "texts again."
            )
        if not task.suffix.strip() or not task.cue:
            raise SidecarError(f"The task {task.name!r} needs a suffix and a cue.")
        if max(len(task.suffix), len(task.cue)) > MAX_TASK_CHARS + 2:
            raise SidecarError(
                f"The suffix and the cue of {task.name!r} are limited to {MAX_TASK_CHARS:,} "
                "characters each; shorten them."
            )
    return tuple(tasks)


def free_task(suffix: str, cue: str = "") -> SidecarTask:
    """A task in a user's own words; its result is the text as the model writes it.

    Raises SidecarError for an empty suffix, or one or a cue that is too long.
    """
    if not suffix.strip():
        raise SidecarError("A task of your own needs an instruction; type a sentence.")
    if max(len(suffix), len(cue)) > MAX_TASK_CHARS:
        raise SidecarError(
            f"The instruction and the cue are limited to {MAX_TASK_CHARS:,} characters each; "
            "shorten them."
        )
    return SidecarTask(
        name=FREE,
        label="Your task",
        suffix=" " + clean(suffix),
        cue="\n\n" + clean(cue),
        parse=parse_text,
        is_done=text_is_done,
        max_tokens=128,
    )
