// The overlap inspector: click a token of the summary, or reach it with the arrow keys and press
// Enter. All that it shows is in the token's data attributes (sidecar_core/view/inspector.py).
const sidecarInspector = (() => {
  const TOKEN = "#summary .t[data-why]";
  let chosen = null;

  const tokens = () => [...document.querySelectorAll(TOKEN)];

  function element(name, css, words) {
    const made = document.createElement(name);
    if (css) made.className = css;
    if (words !== undefined) made.textContent = words;
    return made;
  }

  function shownText(words) {
    return words.replaceAll("\n", "⏎").replaceAll(" ", "␣") || "⟨end⟩";
  }

  function bar(name, value, shared) {
    const line = element("span", `share ${name}`);
    const whole = element("i");
    const part = element("b");
    // Set by script: a policy that forbids style attributes allows this.
    whole.style.width = `${100 * value}%`;
    part.style.width = `${100 * shared}%`;
    line.append(whole, part);
    return line;
  }

  function row([words, p, q]) {
    const line = element("tr");
    const bars = element("td", "bars");
    const shared = Math.min(p, q);
    bars.append(bar("p", p, shared), bar("q", q, shared));
    line.append(element("th", "", shownText(words)), bars);
    for (const value of [p, q, shared]) line.append(element("td", "", value.toFixed(3)));
    return line;
  }

  function table(rows) {
    const made = element("table");
    const head = element("tr");
    for (const words of ["token", "target p and draft q", "p", "q", "shared"]) {
      head.append(element("th", "", words));
    }
    made.append(head, ...rows.map(row));
    return made;
  }

  function panel() {
    let found = document.getElementById("inspector");
    if (!found) {
      found = element("div");
      found.id = "inspector";
      found.tabIndex = -1;
      found.setAttribute("role", "dialog");
      found.setAttribute("aria-label", "Overlap at this token");
      document.body.append(found);
    }
    return found;
  }

  function close(back) {
    const open = document.getElementById("inspector");
    if (!open) return;
    open.remove();
    if (chosen) {
      chosen.classList.remove("chosen");
      if (back) chosen.focus();
    }
  }

  function place(box, token) {
    const at = token.getBoundingClientRect();
    const room = document.documentElement.clientWidth - box.offsetWidth - 8;
    const below = at.bottom + 6 + box.offsetHeight < window.innerHeight;
    box.style.left = `${Math.max(8, Math.min(at.left, room))}px`;
    box.style.top = `${Math.max(8, below ? at.bottom + 6 : at.top - box.offsetHeight - 6)}px`;
  }

  function open(token) {
    close(false);
    chosen = token;
    token.classList.add("chosen");
    const box = panel();
    const shut = element("button", "shut", "×");
    shut.type = "button";
    shut.setAttribute("aria-label", "Close");
    shut.addEventListener("click", () => close(true));
    const head = element("p", "about");
    head.append(element("strong", "", shownText(token.textContent)));
    head.append(` in round ${token.dataset.round}`);
    box.append(shut, head, element("p", "", token.dataset.why));
    if (token.dataset.likeliest) {
      const rows = JSON.parse(token.dataset.likeliest);
      const shared = rows.reduce((sum, [, p, q]) => sum + Math.min(p, q), 0);
      box.append(table(rows));
      box.append(element("p", "sum",
        `Overlap here: ${token.dataset.overlap}, the shared parts summed over the whole `
        + `vocabulary; these ${rows.length} tokens account for ${shared.toFixed(3)} of it. `
        + "p and q are probabilities at temperature 1."));
    } else if (token.dataset.overlap) {
      box.append(element("p", "sum",
        `Overlap here: ${token.dataset.overlap}. This recording has no candidates.`));
    }
    place(box, token);
    box.focus({preventScroll: true});
  }

  // The arrow keys go from token to token; none of them is a tab stop of its own.
  function go(from, by) {
    const all = tokens();
    if (!all.length) return;
    const here = all.indexOf(from);
    const next = here < 0 ? all[0] : all[Math.max(0, Math.min(all.length - 1, here + by))];
    next.tabIndex = -1;
    next.focus();
  }

  document.addEventListener("click", (event) => {
    const token = event.target.closest(TOKEN);
    if (token) open(token);
    else if (!event.target.closest("#inspector")) close(false);
  });

  document.addEventListener("keydown", (event) => {
    const inside = event.target.closest("#summary");
    const by = {ArrowRight: 1, ArrowLeft: -1}[event.key];
    if (event.key === "Escape" && document.getElementById("inspector")) {
      event.stopPropagation();
      close(true);
    } else if (inside && by) {
      event.preventDefault();
      event.stopPropagation();
      go(event.target, by);
    } else if (inside && (event.key === "Enter" || event.key === " ")
        && event.target.matches(TOKEN)) {
      event.preventDefault();
      event.stopPropagation();
      open(event.target);
    }
  }, true);

  window.addEventListener("resize", () => close(false));
  return {open, close};
})();
