"""Fixed pieces of the page: title, card headings, legend. HTML, no visitor's text in it."""

from __future__ import annotations

TITLE = """
<h1>Speculative Sidecar</h1>
<p>A small draft model speeds up a large one by guessing ahead, and writes hashtags on the side.</p>
"""

TOOLS = """
<div class="tools">
  <button type="button" data-do="theme" aria-label="Switch between light and dark"
    title="Light or dark">◐</button>
  <button type="button" data-do="size" aria-label="Presentation size" aria-pressed="false"
    title="Presentation size">A+</button>
</div>
"""

STREAM_HEAD = """
<h2>Summary</h2>
<div class="options">
  <label><input type="checkbox" data-show="rejected" checked> rejected drafts</label>
  <label><input type="checkbox" data-show="rounds"> rounds</label>
  <button type="button" data-do="copy" title="Copy the summary's text">Copy</button>
</div>
"""

LEGEND = """
<ul class="legend" aria-label="Legend">
  <li title="Proposed by the draft, kept by the target">
    <span class="t acc">accepted</span></li>
  <li title="Proposed by the draft, thrown away by the target">
    <del class="t rej">rejected</del></li>
  <li title="The target's own token in place of a rejected one">
    <span class="t cor">corrected</span></li>
  <li title="The target's own token behind a fully accepted block">
    <span class="t bon">bonus</span></li>
  <li title="Proposed, the target has not judged it yet">
    <span class="t pen">drafted</span></li>
</ul>
"""

CHART_HEAD = """
<h2 title="How much of the draft's next-token distribution agrees with the target's:
the sum of min(p, q) over the vocabulary, averaged over the judged positions so far.">α so far</h2>
<p class="sub">agreement of draft and target</p>
"""

SIDECAR_HEAD = """
<h2>Sidecar hashtags</h2>
<p class="sub">the draft goes on, on the memory it has</p>
"""

STANDALONE_HEAD = """
<h2>Standalone hashtags</h2>
<p class="sub">the same model, given the summary afresh</p>
"""

MAP_HEAD = """
<h2>Who sees whom</h2>
<p class="sub">rows read, columns are read; numbers are tokens</p>
"""

RUNS_HEAD = """
<h2>Runs on this article</h2>
<p class="sub">in this tab</p>
"""
