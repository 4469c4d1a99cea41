"""What a file may say that calls itself a recording."""

from __future__ import annotations

from tests.guards.guard import Guard

RECORDING = "test_recording.py"
ORDER = f"{RECORDING}::test_events_out_of_order_are_refused"
EVENT = f"{RECORDING}::test_an_event_that_no_run_can_bring_is_refused_by_its_line"
HEADER = f"{RECORDING}::test_a_header_that_does_not_fit_is_refused"

GUARDS = (
    Guard(
        "a recording of too many bytes",
        "recording.py",
        "    if len(data) > MAX_BYTES:",
        "    if False:",
        f"{RECORDING}::test_a_file_of_too_many_bytes_or_events_is_refused",
    ),
    Guard(
        "a recording of too many events",
        "recording.py",
        '        self._require(self.events < MAX_EVENTS, f"there are more than {MAX_EVENTS:,} '
        'events")\n',
        "",
        f"{RECORDING}::test_a_file_of_too_many_bytes_or_events_is_refused",
    ),
    Guard(
        "an event without end",
        "recording.py",
        'if len(line) > MAX_LINE and "recording" not in fields:',
        "if False:",
        f"{RECORDING}::test_a_line_of_an_event_is_bounded_and_a_header_may_hold_the_longest_article",
    ),
    Guard(
        "a recording that is nested deeply",
        "recording.py",
        "except (ValueError, RecursionError) as error:",
        "except ValueError as error:",
        f"{RECORDING}::test_what_is_no_recording_is_refused_in_one_line",
    ),
    Guard(
        "a recording with half a character",
        "recording.py",
        '        json.dumps(fields, ensure_ascii=False).encode("utf-8")\n',
        "",
        EVENT,
    ),
    Guard(
        "a recording with an article whose tags take minutes to find",
        "recording.py",
        "    if len(header.article) > MAX_ARTICLE:",
        "    if False:",
        HEADER,
    ),
    Guard(
        "a recording with a header without end",
        "recording.py",
        "if len(parts) > 20 or any(len(part) > MAX_WORDS for part in parts):",
        "if False:",
        HEADER,
    ),
    Guard(
        "a recording whose header names other models than its run",
        "recording.py",
        "if any(getattr(header, name) != value for name, value in said.items()):",
        "if False:",
        HEADER,
    ),
    Guard(
        "a recording with tags without end",
        "recording.py",
        '                self._require(len(event.tags) <= MAX_TAGS, f"there are more than '
        '{MAX_TAGS} tags")\n',
        "",
        EVENT,
    ),
    Guard(
        "a recording that plays for years",
        "recording.py",
        "0 <= seconds <= MAX_SECONDS",
        "0 <= seconds",
        EVENT,
    ),
    Guard(
        "a probability that is none",
        "recording.py",
        "fit = all(c is None or 0 <= c <= 1.001 for c in chances)",
        "fit = True",
        EVENT,
    ),
    Guard(
        "a place that no block has",
        "recording.py",
        "0 <= event.place <= RANGES",
        "event.place <= RANGES",
        EVENT,
    ),
    Guard(
        "a recording that begins in the middle",
        "recording.py",
        'self._require(isinstance(event, RunStarted) == (self.events == 0), "a run starts once")',
        "pass",
        ORDER,
    ),
    Guard(
        "a recording that goes on behind its end",
        "recording.py",
        '        self._require(not self.over, "the run is over")\n',
        "",
        ORDER,
    ),
    Guard(
        "a round that is missing",
        "recording.py",
        'self._require(event.round == self.round + 1, "a round is missing")',
        "pass",
        EVENT,
    ),
    Guard(
        "a token of another round",
        "recording.py",
        'self._require(event.round == self.round, "the token is of another round")',
        "pass",
        EVENT,
    ),
    Guard(
        "two ends of one tagger",
        "recording.py",
        'self._require(tagger not in self.tagged, "this tagger is done")',
        "pass",
        ORDER,
    ),
    Guard(
        "settings that no run can have, in a recording",
        "recording.py",
        "RunSettings(**event.settings).validate()",
        "RunSettings(**event.settings)",
        f"{RECORDING}::test_settings_that_no_run_can_have_are_refused",
    ),
    Guard(
        "a value of another type, in a recording",
        "schema.py",
        "        if not fits(value, kinds[name]):",
        "        if False:",
        "test_schema.py::test_a_value_of_another_type_is_refused",
    ),
    Guard(
        "a huge integer in a recording",
        "schema.py",
        "return type(value) is int and -1 <= value < 2**63",
        "return type(value) is int",
        "test_schema.py::test_a_value_of_another_type_is_refused",
    ),
    Guard(
        "an infinite number in a recording",
        "schema.py",
        "type(value) in (int, float) and abs(value) <= sys.float_info.max",
        "type(value) in (int, float)",
        "test_schema.py::test_a_value_of_another_type_is_refused",
    ),
    Guard(
        "a token of no round",
        "recording.py",
        '                self._require(self.round >= 0, "no round has begun")\n',
        "",
        f"{RECORDING}::test_events_out_of_order_are_refused",
    ),
    Guard(
        "a recording that names a folder of the machine",
        "recording.py",
        'half.rpartition("/")[2] for half in halves',
        "half for half in halves",
        f"{RECORDING}::test_it_names_neither_this_machine_nor_any_folder",
    ),
    Guard(
        "a file on the shelf that is no recording",
        "ui/recordings.py",
        "            except (SidecarError, OSError) as error:",
        "            except OSError as error:",
        "ui/test_replay.py::test_the_shelf_offers_what_fits_in_the_scenarios_order",
    ),
    Guard(
        "more viewers than the server has threads",
        "ui/recordings.py",
        "        if not self.places.acquire(blocking=False):",
        "        if False:",
        "ui/test_replay.py::test_no_more_recordings_are_watched_at_a_time_than_threads_allow",
    ),
)
