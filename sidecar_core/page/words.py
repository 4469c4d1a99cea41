"""Fixed pieces of the page: title, card headings, legend, and templates for what changes.

In a template `${value.x}` stands for a part of a component's value: HTML made in `view`. Never
write `{{value}}`: Gradio would evaluate the value as a template once more.
"""

from __future__ import annotations

from sidecar_core import __version__

TITLE = """
<h1>Speculative Sidecar</h1>
<p>A small draft model guesses tokens that a large model checks, and also writes hashtags.</p>
"""

ABOUT = f"""
<p>Speculative Sidecar {__version__}</p>
"""

TOUR = """
<button type="button" class="tour" data-do="tour">Watch the tour</button>
"""

TOOLS = """
<div class="tools">
  <button type="button" data-do="theme" aria-label="Switch between light and dark"
    title="Light or dark">◐</button>
  <button type="button" data-do="size" aria-label="Presentation size" aria-pressed="false"
    title="Presentation size">A+</button>
</div>
"""

MEANWHILE = """
<button type="button" class="meanwhile" data-do="recordings">Watch a recording meanwhile</button>
"""

STREAM_HEAD = """
<h2>Summary</h2>
<div class="options">
  <label><input type="checkbox" data-show="rejected" checked> rejected drafts</label>
  <label><input type="checkbox" data-show="rounds"> rounds</label>
  <button type="button" data-do="copy" title="Copy the text of the summary">Copy</button>
  <button type="button" data-do="share" title="Copy an address that opens this page as it is: the
example or recording, the scenario and the settings, never an article of your own">Share</button>
</div>
"""

LEGEND = """
<ul class="legend" aria-label="Legend">
  <li title="Proposed by the draft, accepted by the target">
    <span class="t acc">accepted</span></li>
  <li title="Proposed by the draft, rejected by the target">
    <del class="t rej">rejected</del></li>
  <li title="The target's own token in place of a rejected one">
    <span class="t cor">corrected</span></li>
  <li title="The target's own token after a fully accepted round">
    <span class="t bon">bonus</span></li>
  <li title="Proposed by the draft, not judged yet">
    <span class="t pen">drafted</span></li>
</ul>
"""

CHART_HEAD = """
<h2 title="The overlap of two next-token distributions: the sum of min(p, q) over the vocabulary.
α is its mean over the judged positions so far.">α so far</h2>
<p class="sub">agreement of draft and target</p>
"""

MAP_HEAD = """
<h2>Who sees what</h2>
<p class="sub">rows attend to columns; numbers are tokens</p>
"""

RUNS_HEAD = """
<h2>Runs on this article</h2>
<p class="sub">in this tab</p>
"""

NOTE = '<p role="status" aria-live="polite" dir="auto">${value}</p>'

STALE = "<p>These results belong to another article. Press Start to run this one.</p>"

STATUS = """
<div class="status ${value.kind}">
  <p role="status" aria-live="polite">${value.message}</p>
  <span class="percent" aria-hidden="true">${value.percent}</span>
  <div class="bar" aria-hidden="true"><i style="width:${value.percent || '0%'}"></i></div>
</div>
"""

TILES = """
<dl class="tiles ${value.passes === '–' ? 'empty' : ''}">
  <div class="tile" title="The overlap of two next-token distributions: the sum of min(p, q) over
the vocabulary. α is its mean over the judged positions.">
    <dt>α</dt><dd class="figure">${value.alpha}</dd><dd class="note">${value.alpha_note}</dd>
    <dd class="bars">${value.alpha_bars || ""}</dd></div>
  <div class="tile" title="Accepted drafts divided by judged drafts.
Drafts after the first rejection of a round are not judged.">
    <dt>Acceptance</dt><dd class="figure">${value.rate}</dd>
    <dd class="note">${value.rate_note}</dd></div>
  <div class="tile" title="Tokens of the summary for each forward pass of the target.
Plain decoding gives 1.">
    <dt>Tokens per pass</dt><dd class="figure">${value.passes}</dd>
    <dd class="note">${value.passes_note}</dd></div>
  <div class="tile" title="This summary's tokens per second, divided by those of plain decoding
(one token per target pass), timed in the same run.">
    <dt>× plain decoding</dt><dd class="figure">${value.speed}</dd>
    <dd class="note">${value.speed_note}</dd></div>
</dl>
"""

STREAM = (
    '<div class="stream" id="summary" tabindex="0" role="region" aria-label="Summary" dir="auto">'
    '${value.done}<span class="pending">${value.pending}</span>'
    '${value.done || value.pending ? "" : "<p class=quiet>The summary appears here, '
    'token by token.</p>"}</div>'
)

PAIR_STREAM = (
    '<div class="stream" tabindex="0" role="region" aria-label="Summary" dir="auto">'
    '${value.done}<span class="pending">${value.pending}</span></div>'
)

_TAGS = """
<div class="head"><h2>{name} ${value.what}</h2><p class="sub">{about}</p></div>
<div class="tags">${value.list}<p class="raw">${value.raw}</p>
<dl class="costs ${value.tokens === '–' ? 'empty' : ''}">
  <div title="Columns of the draft's KV cache that the last token attended to.">
    <dt>attends to</dt><dd>${value.tokens}</dd></div>
  <div title="Size of these keys and values."><dt>cache</dt><dd>${value.bytes}</dd></div>
  <div title="Tokens computed for the tagger before its first token.">
    <dt>prefill</dt><dd>${value.prefilled}</dd></div>
  <div title="Time that the tagger took."><dt>time</dt><dd>${value.time}</dd></div>
</dl></div>
"""


def _tags(name: str, about: str) -> str:
    return _TAGS.replace("{name}", name).replace("{about}", about)


SIDECAR = _tags("Sidecar", "the draft continues from its KV cache")
STANDALONE = _tags("Standalone", "the same model, given only the summary")
PAIR_TAGS = SIDECAR.replace("<h2>", "<h4>").replace("</h2>", "</h4>")
