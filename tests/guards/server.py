"""Headers, password, log and line; what one visitor learns of another."""

from __future__ import annotations

from tests.guards.guard import Guard

LOCKED = "ui/test_serving.py::test_without_the_password_nothing_but_login_and_health_is_answered"
FIGURES = "ui/test_serving.py::test_figures_of_a_locked_app_need_the_password"
LOG = "ui/test_watch.py::test_the_log_of_a_failed_run_holds_no_word_of_the_article"

GUARDS = (
    # The server
    Guard(
        "answers without security headers",
        "ui/middleware.py",
        "                headers.update(self._headers)\n",
        "",
        "ui/test_serving.py::test_every_answer_has_the_headers",
    ),
    Guard(
        "a page that takes scripts from other hosts",
        "ui/middleware.py",
        "\"default-src 'self'\"",
        '"default-src *"',
        "ui/test_serving.py::test_the_policy_names_no_other_host",
    ),
    Guard(
        "sites that frame the page",
        "ui/middleware.py",
        'f"frame-ancestors {frame_ancestors}"',
        '"frame-ancestors *"',
        "ui/test_serving.py::test_sites_that_may_frame_the_page_can_be_chosen",
    ),
    Guard(
        "a policy that an option breaks up",
        "ui/options.py",
        '    if not re.fullmatch(r"[\\w\'*:./ \\[\\]-]+", words, flags=re.ASCII):',
        "    if False:",
        "ui/test_options.py::test_a_variable_that_does_not_fit_is_named_in_one_line",
    ),
    Guard(
        "FastAPI's own pages, which load scripts from elsewhere",
        "ui/serving.py",
        ", **NO_DOCS}",
        "}",
        "ui/test_serving.py::test_pages_that_load_scripts_from_elsewhere_are_not_served",
    ),
    Guard(
        "a password that is asked for at some routes only",
        "ui/serving.py",
        "        middleware.append(Middleware(Gate))",
        "        pass",
        LOCKED,
    ),
    Guard(
        "a token that the login never gave out",
        "ui/middleware.py",
        "any(cookies.get(name) in app.tokens for name in names)",
        "any(name in cookies for name in names)",
        "ui/test_serving.py::test_a_token_that_the_login_never_gave_out_opens_nothing",
    ),
    Guard(
        "figures without the password",
        "ui/serving.py",
        "            if options.login and not _knows(request, options.login):",
        "            if False:",
        FIGURES,
    ),
    Guard(
        "figures with any password",
        "ui/serving.py",
        'return hmac.compare_digest(given, ":".join(login).encode())',
        "return True",
        FIGURES,
    ),
    Guard(
        "a password that can be guessed",
        "ui/options.py",
        "    if len(password.strip()) < MIN_PASSWORD:",
        "    if False:",
        "ui/test_options.py::test_a_variable_that_does_not_fit_is_named_in_one_line",
    ),
    Guard(
        "exceptions that are logged with their messages, which quote the input",
        "ui/logs.py",
        "        lines.append(type(error).__name__)",
        "        lines.append(repr(error))",
        LOG,
    ),
    Guard(
        "exceptions that Gradio prints with their messages",
        "ui/logs.py",
        "            module.traceback = _WithoutMessages()  # type: ignore[attr-defined]",
        "            pass",
        "ui/test_serving.py::test_a_handler_that_fails_is_written_down_without_its_message",
    ),
    Guard(
        "exceptions that are shown with their messages",
        "ui/turn.py",
        "failed: {type(error).__name__}. Start it again.",
        "failed: {error}. Start it again.",
        "ui/test_live.py::test_an_unexpected_exception_becomes_one_clear_line_without_details",
    ),
    Guard(
        "exceptions before a run begins that are shown with their messages",
        "ui/watch.py",
        "The run failed: {type(error).__name__}. Start it again.",
        "The run failed: {error}. Start it again.",
        "ui/test_watch.py::test_what_nobody_foresaw_before_a_run_began_is_a_failure_and_written"
        "_down",
    ),
    Guard(
        "a log with the words of an error",
        "ui/watch.py",
        'error=type(cause).__name__ if cause else ""',
        'error=str(cause) if cause else ""',
        "ui/test_watch.py::test_a_failed_run_is_told_with_the_class_of_its_error",
    ),
    Guard(
        "a visitor with many places",
        "ui/turnstile.py",
        "if visitor is not None and any(t.visitor == visitor for t in self._line):",
        "if False:",
        "ui/test_turnstile.py::test_one_visitor_has_one_place_and_strangers_have_any_number",
    ),
    Guard(
        "a line without end",
        "ui/turnstile.py",
        "            if len(self._line) >= self.max_waiting + self._at_once:",
        "            if False:",
        "ui/test_turnstile.py::test_a_full_waiting_line_refuses_with_a_clear_message",
    ),
    Guard(
        "a second run beside the first in one tab",
        "ui/session.py",
        "        if not self.busy.acquire(timeout=5):",
        "        if self.busy.acquire(timeout=5) is None:",
        "ui/test_tag_lab.py::test_a_second_test_in_the_same_tab_waits_or_is_refused",
    ),
    # Other visitors
    Guard(
        "two tabs that share what they ran",
        "ui/session.py",
        "        return type(self)()",
        "        return self",
        "ui/test_live.py::test_two_sessions_share_nothing",
    ),
    Guard(
        "two tabs that share what they watch",
        "ui/replay.py",
        "        return Player()",
        "        return self",
        "ui/test_replay.py::test_two_tabs_share_no_player",
    ),
    Guard(
        "a visitor who learns that somebody else ran the article",
        "ui/live.py",
        "            event = dataclasses.replace(event, reused_tokens=(0, 0))",
        "            pass",
        "ui/test_live.py::test_nobody_is_told_that_somebody_else_ran_the_article",
    ),
    Guard(
        "runs on another article in the table",
        "ui/session.py",
        "[run for run in self.runs if run.article == key]",
        "list(self.runs)",
        "ui/test_live.py::test_ended_runs_become_ghosts_and_lines_of_the_table_on_their_article"
        "_only",
    ),
    Guard(
        "an article that gets into a file unasked",
        "ui/recordings.py",
        'return recording.named("", article if with_article else "")',
        'return recording.named("", article)',
        "ui/test_replay.py::test_an_article_gets_into_a_saved_run_only_if_asked_for",
    ),
    Guard(
        "inputs that stay in the browser",
        "ui/app.py",
        '        "run_history": False,\n',
        '        "run_history": True,\n',
        "ui/test_app.py::test_inputs_stay_out_of_the_browsers_storage_and_no_font_comes_from_afar",
    ),
)
