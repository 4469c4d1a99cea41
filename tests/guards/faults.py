"""Clocks, memory, numbers and models that fail."""

from __future__ import annotations

from tests.guards.guard import Guard

RUNS = "decoding/test_faults.py"
FILES = "models/test_faults.py"

GUARDS = (
    # Clocks
    Guard(
        "a clock on the wall that jumps",
        "ui/turnstile.py",
        "            now = time.monotonic()",
        "            now = time.time()",
        f"{FILES}::test_no_part_of_the_program_measures_with_the_clock_on_the_wall",
    ),
    # Memory
    Guard(
        "memory that runs out in a pass, told as a traceback",
        "decoding/passes.py",
        "        if is_out_of_memory(error):",
        "        if False:",
        f"{RUNS}::test_out_of_memory_says_what_to_do_and_lets_everything_go",
    ),
    Guard(
        "memory that runs out between two passes, told as a traceback",
        "decoding/engine.py",
        "        if is_out_of_memory(error):",
        "        if False:",
        f"{RUNS}::test_memory_that_runs_out_between_two_passes_is_told_likewise",
    ),
    Guard(
        "stored prefixes that stay while memory is short",
        "decoding/engine.py",
        "            store.clear()",
        "            pass",
        f"{RUNS}::test_out_of_memory_says_what_to_do_and_lets_everything_go",
    ),
    Guard(
        "stored prefixes that stay while a measurement is short of memory",
        "experiments/alpha.py",
        "                engine.store.clear()",
        "                pass",
        f"{RUNS}::test_labs_let_everything_go_where_memory_runs_out",
    ),
    Guard(
        "stored prefixes that stay while a leak test is short of memory",
        "experiments/leak.py",
        "        engine.store.clear()\n",
        "",
        f"{RUNS}::test_labs_let_everything_go_where_memory_runs_out",
    ),
    Guard(
        "stored prefixes without end",
        "decoding/prefix.py",
        "            while self.nbytes > self.max_bytes:\n"
        "                self._entries.popitem(last=False)\n",
        "",
        "decoding/test_prefix.py::test_the_longest_unused_is_evicted_first_and_the_bound_holds",
    ),
    Guard(
        "a tab that grows with every run",
        "ui/session.py",
        "        del self.runs[:-MAX_RUNS]\n",
        "",
        "ui/test_live.py::test_a_page_that_stays_open_for_days_does_not_grow",
    ),
    Guard(
        "records in memory without end",
        "experiments/records.py",
        "        while len(self._records) > self._capacity:\n"
        "            del self._records[next(iter(self._records))]\n",
        "",
        "experiments/test_alpha.py::test_records_in_memory_are_the_latest_only",
    ),
    # Numbers
    Guard(
        "logits that are not finite",
        "decoding/passes.py",
        "    _check_finite(model, numbers)\n",
        "",
        "decoding/test_speculative.py::test_logits_that_are_no_numbers_end_in_a_clear_error",
    ),
    Guard(
        "hidden states that are not finite, and their columns",
        "decoding/passes.py",
        "    _check_finite(model, numbers)\n",
        "",
        f"{RUNS}::test_columns_that_are_not_finite_are_never_kept_for_others",
    ),
    Guard(
        "columns of a pass that failed",
        "decoding/passes.py",
        "        cache.drop_undeclared()\n",
        "",
        "decoding/test_cache.py::test_a_pass_that_failed_leaves_the_cache_as_it_was",
    ),
    Guard(
        "a residual of nothing, which is no distribution",
        "decoding/sampling.py",
        "return rest / mass if mass > 0 else p",
        "return rest / mass",
        "decoding/test_sampling.py::test_the_residual_of_equal_distributions_is_still_a_distribution",
    ),
    Guard(
        "u of 0, which accepts what the target rules out",
        "decoding/sampling.py",
        "return 1.0 - float(torch.rand(1, generator=generator, device=generator.device))",
        "return float(torch.rand(1, generator=generator, device=generator.device))",
        "decoding/test_sampling.py::test_u_is_never_zero",
    ),
    # A model that fails
    Guard(
        "a draft that fails while it drafts",
        "decoding/speculative.py",
        "                draft = None\n",
        "                raise\n",
        f"{RUNS}::test_without_its_draft_the_target_goes_on_to_the_same_summary",
    ),
    Guard(
        "a draft that fails while it reads",
        "decoding/engine.py",
        "            yield DraftLost(str(error), self.clock.now())\n            return None",
        "            raise",
        f"{RUNS}::test_a_draft_that_fails_while_it_reads_is_left_behind_too",
    ),
    Guard(
        "a sidecar on the cache of a draft that was lost",
        "decoding/engine.py",
        "self._tag(None if self.draft_lost else draft, summary.text)",
        "self._tag(draft, summary.text)",
        f"{RUNS}::test_tags_of_a_lost_draft_are_skipped_with_a_reason",
    ),
    Guard(
        "columns of a lost draft that are kept for later runs",
        "decoding/engine.py",
        "                    self.engine.store.forget(self.pair.draft, "
        "_prefix(self.prompts.draft).segments)\n",
        "",
        f"{RUNS}::test_the_columns_of_a_lost_draft_are_not_kept",
    ),
    Guard(
        "columns of a failed run that are kept for later runs",
        "decoding/engine.py",
        "            store.forget(model, _prefix(prompt).segments)",
        "            pass",
        f"{RUNS}::test_nothing_of_a_failed_run_is_kept",
    ),
    Guard(
        "a tagger that fails and takes the summary with it",
        "decoding/engine.py",
        "        yield TagsSkipped(tagger, str(error), task.name)",
        "        raise",
        f"{RUNS}::test_a_tagger_that_fails_in_the_middle_leaves_summary_and_run",
    ),
    Guard(
        "one bad article that ends the measurement of a corpus",
        "experiments/alpha.py",
        "            yield Skipped(document.id, str(error))",
        "            raise",
        f"{RUNS}::test_an_article_on_which_a_model_fails_is_skipped_and_the_next_is_measured",
    ),
    Guard(
        "a live run that fails and is never told",
        "ui/live.py",
        "        except Exception as error:\n            end = error\n",
        "        except ZeroDivisionError as error:\n            end = error\n",
        "ui/test_live.py::test_an_error_in_the_middle_is_shown_and_the_next_run_works",
    ),
    Guard(
        "an error on ZeroGPU that crosses with its message",
        "ui/zero_gpu.py",
        '            yield Failed(f"The run failed: {type(error).__name__}. Start it again.")',
        "            raise",
        "ui/test_zero_gpu.py::test_an_error_in_the_other_process_crosses_as_one_line",
    ),
    Guard(
        "models loaded on ZeroGPU outside the main thread",
        "ui/zero_gpu.py",
        "        if threading.current_thread() is not threading.main_thread():",
        "        if False:",
        "ui/test_zero_gpu.py::test_models_are_not_loaded_anywhere_but_in_the_main_thread",
    ),
)
