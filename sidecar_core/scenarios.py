"""Five settings to show one after the other.

A scenario changes the draft prompt and the two toggles only; everything else stays as it was set.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from sidecar_core.settings import DraftPrompt, RunSettings

FREE = ("draft_prompt", "suffix_masking", "document_masking")
"""What a scenario sets."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """`look` says what to watch while it runs."""

    key: str
    title: str
    look: str
    draft_prompt: DraftPrompt
    suffix_masking: bool
    document_masking: bool

    def apply(self, settings: RunSettings) -> RunSettings:
        return dataclasses.replace(
            settings,
            draft_prompt=self.draft_prompt,
            suffix_masking=self.suffix_masking,
            document_masking=self.document_masking,
        )


SCENARIOS = (
    Scenario(
        "plain",
        "Plain speculation",
        "Draft and target read the same prompt. Watch α settle: it is the mark to beat.",
        "identical",
        True,
        True,
    ),
    Scenario(
        "visible",
        "Suffix in sight",
        "The draft also reads “then output hashtags”; the target does not. Watch α fall.",
        "compound",
        False,
        True,
    ),
    Scenario(
        "masked",
        "Suffix masked",
        "The suffix is hidden until the summary is done. Watch α come back.",
        "compound",
        True,
        True,
    ),
    Scenario(
        "leaky",
        "Tags see the document",
        "The tagger still attends to the article. Watch for a tag that the summary does not hold.",
        "compound",
        True,
        False,
    ),
    Scenario(
        "grounded",
        "Document masked",
        "The tagger sees the summary only. Watch the tags keep to it, on a smaller cache.",
        "compound",
        True,
        True,
    ),
)

BY_KEY = {scenario.key: scenario for scenario in SCENARIOS}
