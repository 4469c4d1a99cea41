"""A loaded pair, ready to run: what an article is checked against, and the start of a run."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Generator, Sequence

from sidecar_core.decoding import capacity
from sidecar_core.decoding.prefix import PrefixStore
from sidecar_core.decoding.run import Prompts, Run, Tools
from sidecar_core.events import Event
from sidecar_core.main_tasks import MainTask, check_main_task, main_task_of, named_main_task
from sidecar_core.models.pair import Pair
from sidecar_core.prompts import Article, PromptBuilder, check_article, unrelated_prompt
from sidecar_core.settings import MAX_ARTICLE_TOKENS, RunSettings
from sidecar_core.tasks import SidecarTask, check_tasks, named, task_of


def never() -> bool:
    return False


class Engine:
    """Runs a pair. Holds no state of a run, so several may go on at once; the prefix store is
    shared, and guarded.

    `stop_ids` end the summary: the target's alone, since the summary is the target's text.
    `tag_stop_ids` end what the draft writes by itself: its own, and the target's too, since no tag
    stands behind any end of text of this chat.
    """

    def __init__(self, pair: Pair, store: PrefixStore | None = None) -> None:
        self.pair = pair
        self.prompts = PromptBuilder(pair.tokenizer)
        self.store = store if store is not None else PrefixStore()
        self.stop_ids = pair.target.eos_ids
        self.tag_stop_ids = pair.target.eos_ids | pair.draft.eos_ids
        self.runs_at_once = capacity.runs_at_once(pair, self.store.max_bytes)

    def article_limit(
        self,
        settings: RunSettings,
        tasks: Sequence[SidecarTask] = (),
        main_task: MainTask | None = None,
    ) -> int:
        """Most tokens an article may have: the app's limit, or what the models leave room for."""
        room = min(self.pair.target.max_positions, self.pair.draft.max_positions)
        main = main_task or main_task_of(settings)
        frame = len(self.prompts.article("", instruction=main.instruction))
        longest = max(
            len(self.prompts.plain(task.suffix))
            + len(self.prompts.plain(task.cue))
            + task.max_tokens
            for task in tasks or (task_of(settings),)
        )
        return max(0, min(MAX_ARTICLE_TOKENS, room - frame - settings.max_tokens - longest))

    def build_prompts(
        self,
        article: str | Article,
        settings: RunSettings,
        tasks: Sequence[SidecarTask] = (),
        main_task: MainTask | None = None,
    ) -> Prompts:
        """Checked prompts for a run, with the main task that is given, or the settings'; the
        draft's holds the suffix of the first of `tasks`, or of the settings' task. Raises
        SidecarError for an article that cannot be used."""
        tasks, main = tasks or (task_of(settings),), main_task or main_task_of(settings)
        limit = self.article_limit(settings, tasks, main)
        article = check_article(article, self.prompts, limit)
        full = self.prompts.article(article.text, tasks[0].suffix, main.instruction)
        suffix = full.segment("suffix").ids
        target = full.without("suffix")
        if settings.draft_prompt == "compound":
            return Prompts(target, full, suffix)
        if settings.draft_prompt == "identical":
            return Prompts(target, target, suffix)
        room = self.pair.draft.max_positions - settings.max_tokens
        return Prompts(target, unrelated_prompt(settings.draft_text, self.prompts, room), ())

    def segments(
        self, article: str | Article, settings: RunSettings
    ) -> tuple[tuple[str, int], ...]:
        """(name, tokens) of the draft's prompt, before any run."""
        return self.build_prompts(article, settings).draft.lengths

    def stream(
        self,
        article: str | Article,
        settings: RunSettings | None = None,
        stop: Callable[[], bool] = never,
        *,
        task: SidecarTask | None = None,
        tasks: Sequence[SidecarTask] = (),
        main_task: MainTask | None = None,
    ) -> Generator[Event, None, None]:
        """The events of one run, RunStarted to RunFinished.

        `main_task`, and `tasks` or the one `task`, take the place of the settings'. The tasks share
        the summary and its cache; the first one's suffix is the one in the draft's prompt, and a
        further one's takes its place once the summary is done.

        `stop` is asked between forward passes: once it is true the run ends with reason
        "cancelled" and keeps what it has; closing the generator ends it likewise. A draft that
        fails is left behind (DraftLost): the summary is then the target's alone. Raises
        SidecarError, before the first event for bad input, in the middle behind a RunFailed, and
        keeps no columns of a run that failed.
        """
        settings = (settings or RunSettings()).validate()
        tasks = check_tasks(tasks or (task or task_of(settings),))
        main = check_main_task(main_task or main_task_of(settings))
        settings = dataclasses.replace(settings, **named(tasks[0]), **named_main_task(main))
        tools = Tools(self.pair, self.prompts, self.store, self.stop_ids, self.tag_stop_ids)
        run = Run(tools, settings, self.build_prompts(article, settings, tasks, main), tasks, stop)
        return run.events()
