"""Five combinations of settings, to be shown one after the other.

A scenario changes the draft prompt and the two toggles; all other settings stay, but for a draft
length of "auto": that would draft other tokens under each draft prompt, and α would be a mean over
other places.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from sidecar_core.settings import AUTO, COMPARED_GAMMA, DraftPrompt, RunSettings

CHANGED = ("draft_prompt", "suffix_masking", "document_masking")
"""The settings that a scenario changes."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """`key` names it in links and recordings; `look` says what to look at while it runs."""

    key: str
    title: str
    look: str
    draft_prompt: DraftPrompt
    suffix_masking: bool
    document_masking: bool

    @property
    def needs_baseline(self) -> bool:
        """Whether its α says something beside the first scenario's only."""
        return self.key.startswith("suffix-")

    @property
    def about_tags(self) -> bool:
        """Whether it shows something of the tags, not of α."""
        return self.key.startswith("document-")

    def apply(self, settings: RunSettings) -> RunSettings:
        return dataclasses.replace(
            settings,
            draft_prompt=self.draft_prompt,
            suffix_masking=self.suffix_masking,
            document_masking=self.document_masking,
            gamma=COMPARED_GAMMA if settings.gamma == AUTO else settings.gamma,
        )


SCENARIOS = (
    Scenario(
        "identical",
        "Identical prompts",
        "Draft and target read the same prompt. This α is the baseline.",
        "identical",
        True,
        True,
    ),
    Scenario(
        "suffix-visible",
        "Suffix visible",
        "The draft also reads “then output hashtags”; the target does not. "
        "Compare α with the baseline.",
        "compound",
        False,
        True,
    ),
    Scenario(
        "suffix-masked",
        "Suffix masked",
        "The draft does not see the suffix until the summary is finished. "
        "Compare α with the first two runs.",
        "compound",
        True,
        True,
    ),
    Scenario(
        "document-attended",
        "Document attended",
        "The draft still sees the article while it writes tags. "
        "Look for tags that are not in the summary.",
        "compound",
        True,
        False,
    ),
    Scenario(
        "document-masked",
        "Document masked",
        "The draft does not see the article while it writes tags. "
        "Compare the tags and the size of the cache.",
        "compound",
        True,
        True,
    ),
)

BY_KEY = {scenario.key: scenario for scenario in SCENARIOS}

EARLIER_KEYS = {
    "plain": "identical",
    "visible": "suffix-visible",
    "masked": "suffix-masked",
    "leaky": "document-attended",
    "grounded": "document-masked",
}
"""Keys in links and recordings of earlier versions → the keys of today."""


def find_scenario(key: str) -> Scenario | None:
    """The scenario with that key of this or an earlier version; None if there is none."""
    return BY_KEY.get(EARLIER_KEYS.get(key, key))
