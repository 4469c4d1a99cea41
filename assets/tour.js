// The tour: when it begins by itself, which keys lead it, and what ends it. The server plays it.
(() => {
  const FORM = "#scenarios, #input, #recordings, #more, #below";
  const STILL = matchMedia("(prefers-reduced-motion: reduce)");
  const button = (id) => document.getElementById(id);
  const touring = () => document.querySelector("[data-tour]") !== null;
  let how = "";
  let touched = false;

  function start(itself) {
    how = (itself ? "itself " : "") + (STILL.matches ? "still" : "");
    button("tour").click();
    if (window.innerWidth <= 820) button("output").scrollIntoView();
  }

  window.sidecarTour = { how: () => how };

  // A first visit without a wish of its own, or one that asks for the tour.
  function wanted() {
    const query = new URLSearchParams(location.search);
    query.delete("__theme");
    let first = false;
    try {
      first = localStorage.getItem("sidecar-tour") === null && query.size === 0;
      localStorage.setItem("sidecar-tour", "offered");
    } catch {
      // no storage here: every visit would be the first
    }
    return query.has("tour") ? "asked" : first ? "itself" : "";
  }

  const arrival = new MutationObserver(() => {
    if (!document.querySelector("[data-do=tour]") || !button("start")) return;
    arrival.disconnect();
    const why = wanted();
    if (why) setTimeout(() => touched || start(why === "itself"), 1000);
  });
  arrival.observe(document.documentElement, { childList: true, subtree: true });

  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-do=tour]")) start(false);
    else if (event.isTrusted && event.target.closest(FORM)) leave();
  });

  function leave() {
    touched = true;
    if (touring()) button("tour-end").click();
  }

  document.addEventListener("keydown", (event) => {
    const at = event.target;
    if (at.closest?.(FORM)) return leave();
    if (!touring() || event.ctrlKey || event.metaKey || event.altKey) return;
    if (at.closest?.("input, textarea, select, [role=tab], [role=listbox]")) return;
    if (event.key === " " && at.closest?.("button, a, summary")) return; // its own press
    const hold = button("pause").disabled ? (STILL.matches ? "tour-next" : "play") : "pause";
    const lead = { " ": hold, ArrowLeft: "tour-back", ArrowRight: "tour-next", Escape: "tour-end" };
    if (!lead[event.key]) return;
    event.preventDefault();
    button(lead[event.key]).click();
  });
})();
