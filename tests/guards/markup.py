"""Markup and templates in what visitors, files, links and models bring: it is text."""

from __future__ import annotations

from tests.guards.guard import Guard

RECORDING = "test_recording.py"
TAGS = "ui/test_tags.py::test_markup_in_tags_passages_and_raw_output_is_text"
TAG_LAB = "ui/test_tag_lab.py::test_markup_in_tags_summary_and_watched_word_is_text"
PAGE = "ui/test_recording_page.py::test_whatever_a_file_brings_stays_text"

GUARDS = (
    Guard(
        "markup in the stream",
        "ui/render.py",
        "{text(word or shown)}",
        "{word or shown}",
        "ui/test_render.py::test_markup_in_a_token_is_text",
    ),
    Guard(
        "markup in the status line",
        "ui/render.py",
        '"message": text(message)',
        '"message": message',
        "ui/test_render.py::test_the_status_line_escapes_and_bounds_its_bar",
    ),
    Guard(
        "markup in a tag",
        "ui/tags.py",
        "{sign}{text(tag)}",
        "{sign}{tag}",
        TAGS,
    ),
    Guard(
        "markup in the passage that shows where a tag stands",
        "ui/tags.py",
        'title="{attribute(words + passage)}"',
        'title="{words + passage}"',
        TAGS,
    ),
    Guard(
        "markup in what a tagger is writing",
        "ui/tags.py",
        'shown["raw"] = text(report.text)',
        'shown["raw"] = report.text',
        TAGS,
    ),
    Guard(
        "markup in output that held no tag",
        "ui/tags.py",
        'shown["raw"] = text(done.forced + done.text)',
        'shown["raw"] = done.forced + done.text',
        TAGS,
    ),
    Guard(
        "markup in an answer to a free task",
        "ui/tags.py",
        '{text(" ".join(done.tags))}',
        '{" ".join(done.tags)}',
        "ui/test_tags.py::test_a_text_is_shown_as_it_is_without_grounding",
    ),
    Guard(
        "markup in the name of an unknown task, beside the tags",
        "ui/tags.py",
        "what = text(NOUNS.get(task, task))",
        "what = NOUNS.get(task, task)",
        "ui/test_tags.py::test_the_name_of_an_unknown_task_is_text",
    ),
    Guard(
        "markup in the name of an unknown task, in the table of runs",
        "ui/runs.py",
        "{text(details(record.settings) + stopped)}",
        "{details(record.settings) + stopped}",
        "ui/test_tags.py::test_the_name_of_an_unknown_task_is_text",
    ),
    Guard(
        "markup in a leaked tag, in what came out of a scenario",
        "ui/live.py",
        "</b> {text(words)}",
        "</b> {words}",
        "ui/test_live.py::test_markup_in_what_came_out_of_a_scenario_is_text",
    ),
    Guard(
        "markup in an error, which Gradio shows as HTML",
        "ui/edge.py",
        "escape(str(error), quote=False)",
        "str(error)",
        f"{RECORDING}::test_a_recording_of_an_unknown_kind_of_setting_is_text_everywhere",
    ),
    Guard(
        "markup in a link",
        "ui/app.py",
        'text(f"{error} The page opened with its usual settings.")',
        'f"{error} The page opened with its usual settings."',
        "ui/test_app.py::test_markup_in_a_link_is_text",
    ),
    Guard(
        "markup in what a recording says that it is",
        "ui/replay.py",
        "{text(recording.header.describe())}",
        "{recording.header.describe()}",
        "ui/test_replay.py::test_markup_in_a_recording_is_inert",
    ),
    Guard(
        "markup in the title of a saved page",
        "ui/recording_page.py",
        "text(recording.header.title)",
        "recording.header.title",
        PAGE,
    ),
    Guard(
        "markup in the settings of a saved page",
        "ui/recording_page.py",
        "<bdi>{text(value)}</bdi>",
        "<bdi>{value}</bdi>",
        PAGE,
    ),
    Guard(
        "markup in the error of a saved page's run",
        "ui/recording_page.py",
        "text(_status(report))",
        "_status(report)",
        "ui/test_recording_page.py::test_an_error_that_a_file_brings_is_text",
    ),
    Guard(
        "a script's end inside the data of a saved page",
        "ui/recording_page.py",
        '.replace("<", "\\\\u003c")',
        "",
        PAGE,
    ),
    Guard(
        "any script in a saved page but its own",
        "ui/recording_page.py",
        '"script_hash": _digest(template, "script")',
        '"script_hash": "unsafe-inline"',
        "ui/test_recording_page.py::test_nothing_is_fetched_and_only_its_own_script_and_styles_may"
        "_run",
    ),
    Guard(
        "placeholders of the saved page in what a file brings",
        "ui/recording_page.py",
        '    return re.sub(r"{{(\\w+)}}", lambda found: pieces[found[1]], template)',
        "    for name, piece in pieces.items():\n"
        '        template = template.replace("{{" + name + "}}", piece)\n'
        "    return template",
        PAGE,
    ),
    Guard(
        "markup in the name of a line in the chart",
        "ui/figures.py",
        "{text(name)}",
        "{name}",
        "ui/test_figures.py::test_a_label_is_text",
    ),
    Guard(
        "markup in a name in the tag experiment's figure",
        "experiments/tag_figures.py",
        "{escape(words)}",
        "{words}",
        "experiments/test_tag_figures.py::test_names_are_text_whatever_they_hold",
    ),
    Guard(
        "markup in an article's name in the α lab",
        "ui/alpha_figures.py",
        "f'<th scope=\"row\">{text(cell)}</th>'",
        "f'<th scope=\"row\">{cell}</th>'",
        "ui/test_alpha_lab.py::test_names_from_an_upload_are_text",
    ),
    Guard(
        "markup in what the α lab skipped",
        "ui/alpha_figures.py",
        "{text(s.where)}: {text(s.why)}",
        "{s.where}: {s.why}",
        "ui/test_alpha_lab.py::test_names_from_an_upload_are_text",
    ),
    Guard(
        "markup in a tag in the tag lab",
        "ui/tag_views.py",
        "{text(entry['tag'])}",
        "{entry['tag']}",
        TAG_LAB,
    ),
    Guard(
        "markup in a passage in the tag lab",
        "ui/tag_views.py",
        '{attribute(entry["passage"])}',
        '{entry["passage"]}',
        TAG_LAB,
    ),
    Guard(
        "markup in the summary that all taggers got",
        "ui/tag_views.py",
        "{text(report.forced.text)}",
        "{report.forced.text}",
        TAG_LAB,
    ),
    Guard(
        "markup in the word that is watched for",
        "ui/tag_views.py",
        "{text(report.watch)}",
        "{report.watch}",
        TAG_LAB,
    ),
    Guard(
        "markup in what loading the models says",
        "ui/app.py",
        'title="{attribute(now.text)}"',
        'title="{text(now.text)}"',
        "ui/test_app.py::test_what_a_model_brings_stays_inside_its_attribute",
    ),
    Guard(
        "template syntax that is evaluated once more",
        "ui/words.py",
        'NOTE = "<p>${value}</p>"',
        'NOTE = "<p>{{value}}</p>"',
        "ui/test_app.py::test_no_template_evaluates_a_value_twice",
    ),
)
