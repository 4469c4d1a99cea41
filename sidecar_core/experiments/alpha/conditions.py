"""What the draft reads while it drafts the summary: the conditions that are compared.

| condition | draft prompt | who sees the suffix |
|---|---|---|
| `identical` | the target's | there is none |
| `visible` | with the suffix | tail and summary |
| `masked` | with the suffix, its positions kept free (natural) | nobody |
| `rebased` | with the suffix, the gap closed | nobody |
| `unrelated` | some other text | there is none |
| `translation` | with a suffix that asks for a translation | tail and summary |
| `leaky-tail` | with the suffix (natural) | the chat tail, and so the summary by way of it |

The last two are controls: is it *this* suffix that hurts, and does it matter that the tail's rows
are masked too?
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal

from sidecar_core.errors import SidecarError
from sidecar_core.experiments.records import digest
from sidecar_core.settings import RunSettings
from sidecar_core.tasks import FRENCH, SidecarTask

if TYPE_CHECKING:
    from sidecar_core.decoding.engine import Engine

STANDARD = ("identical", "visible", "masked", "rebased", "unrelated")
CONTROLS = ("translation", "leaky-tail")

ABOUT = {
    "identical": "the draft reads exactly what the target reads",
    "visible": "the draft also sees the suffix",
    "masked": "the suffix is masked, its positions stay free",
    "rebased": "the suffix is masked, the gap closed",
    "unrelated": "the draft never read the article",
    "translation": "a visible suffix that asks for something else",
    "leaky-tail": "masked from the summary, but not from the chat tail",
}
"""One line for each, for tables and tooltips."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One way for the draft to read the prompt.

    The tail stands `room` positions behind the instruction. `suffix` holds the tokens that are read
    in that room, if `seen_by` anybody; a masked suffix is never read, so only its length counts.
    `instead` is text that the draft reads in place of the article.
    """

    name: str
    room: int = 0
    suffix: tuple[int, ...] = ()
    seen_by: Literal["nobody", "tail", "all"] = "nobody"
    instead: str = ""

    @property
    def key(self) -> str:
        """Names this condition's reading inside a record: any change of it is another one."""
        return f"{self.name}-{digest(asdict(self))[:12]}"


def check_names(names: Sequence[str]) -> tuple[str, ...]:
    """The names, each once. Raises SidecarError for none, or one that is not a condition's."""
    known = ", ".join(STANDARD + CONTROLS)
    if not names:
        raise SidecarError(f"Name at least one condition of {known}.")
    for name in names:
        if name not in ABOUT:
            raise SidecarError(f"There is no condition {name!r}; choose from {known}.")
    return tuple(dict.fromkeys(names))


def choose(
    names: Sequence[str], engine: Engine, task: SidecarTask, draft_text: str = ""
) -> tuple[Condition, ...]:
    """The conditions of these names (see `check_names`), for a task's suffix. `draft_text` is what
    `unrelated` reads."""
    suffix = engine.prompts.plain(task.suffix)
    other = engine.prompts.plain(FRENCH.suffix)
    made = {
        "identical": Condition("identical"),
        "visible": Condition("visible", len(suffix), suffix, "all"),
        "masked": Condition("masked", len(suffix)),
        "rebased": Condition("rebased"),
        "unrelated": Condition("unrelated", instead=draft_text.strip() or RunSettings().draft_text),
        "translation": Condition("translation", len(other), other, "all"),
        "leaky-tail": Condition("leaky-tail", len(suffix), suffix, "tail"),
    }
    return tuple(made[name] for name in check_names(names))
