// A round in the chart and its tokens in the summary mark each other: hover over one of the two, or
// move to a token by keyboard.
(() => {
  let marked = null;

  function mark(round) {
    if (round === marked) return;
    marked = round;
    document.querySelectorAll(".of-round").forEach((node) => node.classList.remove("of-round"));
    if (!round) return;
    document
      .querySelectorAll(`#summary .t[data-round="${Number(round)}"]`)
      .forEach((node) => node.classList.add("of-round"));
    // The bars of a round: the same place in each trace.
    document
      .querySelectorAll(`#chart .barlayer .trace .point:nth-child(${Number(round)})`)
      .forEach((node) => node.classList.add("of-round"));
  }

  function roundOf(target) {
    return target.closest?.("#summary .t[data-round]")?.dataset.round ?? null;
  }

  for (const kind of ["pointerover", "focusin"]) {
    document.addEventListener(kind, (event) => {
      const round = roundOf(event.target);
      const plot = event.target.closest?.("#chart .js-plotly-plot");
      if (plot) listen(plot);
      else mark(round);
    });
  }

  // Plotly says which round the pointer is over; a figure that is drawn again keeps its listeners.
  function listen(plot) {
    if (plot.listening || !plot.on) return;
    plot.listening = true;
    plot.on("plotly_hover", (data) => mark(String(data.points[0].x)));
    plot.on("plotly_unhover", () => mark(null));
  }
})();
