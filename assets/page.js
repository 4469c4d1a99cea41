// Small conveniences that need no server: theme, size, stream options, copy, save, links.
(() => {
  const root = document.documentElement;

  function toast(message) {
    let box = document.getElementById("toast");
    if (!box) {
      box = document.createElement("div");
      box.id = "toast";
      box.setAttribute("role", "status");
      document.body.append(box);
    }
    box.textContent = message;
    box.classList.add("on");
    clearTimeout(box.timer);
    box.timer = setTimeout(() => box.classList.remove("on"), 2500);
  }

  async function copy(words, done) {
    try {
      await navigator.clipboard.writeText(words);
    } catch {
      const area = document.createElement("textarea"); // pages without https have no clipboard
      area.value = words;
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    toast(done);
  }

  function summaryText() {
    const copyOf = document.getElementById("summary").cloneNode(true);
    copyOf.querySelectorAll(".rej, .pending, .quiet").forEach((node) => node.remove());
    return copyOf.textContent.trim();
  }

  window.sidecarPage = {
    save(name, words) {
      const type = name.endsWith(".html") ? "text/html" : "application/x-ndjson";
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([words], { type }));
      link.download = name;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10000);
      return "";
    },
    // What a visitor typed outlives a reload; Gradio reloads the page when a server has restarted.
    // The browser keeps it for this tab alone and forgets it with the tab.
    keep(name, words) {
      try {
        sessionStorage.removeItem(`sidecar-${name}`); // nothing older comes back if there is no room
        sessionStorage.setItem(`sidecar-${name}`, words);
      } catch {
        // no storage here, or no room in it
      }
    },
    kept(name, there) {
      let words = null;
      try {
        words = sessionStorage.getItem(`sidecar-${name}`);
      } catch {
        // no storage here
      }
      if (words === null || words === there) return there;
      toast("Your text was restored");
      return words;
    },
    // The address follows what is shown, from a visitor's first step on.
    follow(query) {
      if (!touched) return query;
      const address = new URL(location);
      const foreign = [...address.searchParams].filter(([name]) => name.startsWith("__"));
      address.search = new URLSearchParams([...new URLSearchParams(query), ...foreign]);
      history.replaceState(history.state, "", address);
      return query;
    },
    copyLink(query) {
      const whole = /(^|&)(example|recording)=/.test(query);
      const done = whole ? "Link copied" : "Link to the settings copied; your article is not in it";
      copy(location.origin + location.pathname + (query ? "?" + query : ""), done);
      return "";
    },
  };

  let touched = false;
  for (const kind of ["click", "keydown"]) {
    document.addEventListener(kind, (event) => (touched ||= event.isTrusted), true);
  }

  function unmark() {
    document.querySelectorAll("#scenarios .current").forEach((b) => b.classList.remove("current"));
  }

  function toOutput() {
    if (window.innerWidth <= 820) document.getElementById("output").scrollIntoView();
    else window.scrollTo(0, 0);
  }

  const actions = {
    theme: () => document.body.classList.toggle("dark"),
    size: (button) => {
      const on = root.classList.toggle("presentation");
      button.setAttribute("aria-pressed", on);
      window.dispatchEvent(new Event("resize")); // the chart adapts to the new size
    },
    recordings: () => {
      const shelf = document.getElementById("recordings");
      if (!document.getElementById("watch")?.offsetParent) shelf.querySelector("button").click();
      shelf.scrollIntoView({ behavior: "smooth", block: "center" });
    },
    share: () => document.getElementById("link").click(),
    find: (button) => {
      const box = document.querySelector("#article textarea");
      const words = button.dataset.passage.replace(/^…|…$/g, "").trim().split(/\s+/);
      const pattern = words.map((word) => word.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")).join("\\s+");
      const found = new RegExp(pattern).exec(box.value);
      if (!found) return toast("This passage is not in the article on the page");
      box.inputMode = "none"; // no keyboard on a phone
      box.addEventListener("blur", () => box.removeAttribute("inputmode"), { once: true });
      box.focus({ preventScroll: true });
      box.setSelectionRange(found.index, found.index + found[0].length);
      const above = box.cloneNode(); // as long as the text down to the passage
      above.style.cssText = `position: absolute; width: ${box.offsetWidth}px; height: 0; min-height: 0`;
      box.after(above);
      above.value = box.value.slice(0, found.index + 1);
      box.scrollTop = above.scrollHeight - box.clientHeight / 2;
      above.remove();
      box.scrollIntoView({ block: "nearest" });
    },
    copy: () => {
      const words = summaryText();
      if (words) copy(words, "Summary copied");
      else toast("There is no summary yet");
    },
  };

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    actions[button.dataset.do]?.(button);
    if (button.id === "watch") toOutput();
    if (["watch", "tour"].includes(button.id)) unmark();
    if (button.id === "start" || button.id.startsWith("scenario-")) {
      unmark();
      if (button.id !== "start") button.classList.add("current");
      if (window.innerWidth <= 820) {
        document.getElementById("status").scrollIntoView({ behavior: "smooth" });
      }
    }
  });

  // From the first touch on, the article is the visitor's, also after a reload.
  for (const kind of ["click", "keydown", "change"]) {
    document.addEventListener(kind, (event) => {
      const address = new URL(location);
      if (!event.isTrusted || !event.target.closest?.("#input") || !address.search) return;
      ["example", "recording"].forEach((name) => address.searchParams.delete(name));
      history.replaceState(history.state, "", address);
    });
  }

  document.addEventListener("change", (event) => {
    const name = event.target.dataset?.show;
    if (name) root.dataset[name] = event.target.checked ? "on" : "off";
    if (event.target.type === "file" && event.target.closest("#recordings")) {
      toOutput();
      unmark();
    }
  });

  // Start is disabled during a run: after a key press, move the focus to Stop, and back afterwards.
  let keyed = false;
  document.addEventListener("keydown", (event) => {
    keyed = document.activeElement?.id === "start" && [" ", "Enter"].includes(event.key);
  });
  new MutationObserver(() => {
    const [start, stop] = [document.getElementById("start"), document.getElementById("stop")];
    const lost = [document.body, start, stop, null].includes(document.activeElement);
    if (!keyed || !lost) return;
    if (start?.disabled && !stop.disabled) stop.focus();
    else if (stop?.disabled && !start.disabled && document.activeElement !== start) {
      start.focus();
    }
  }).observe(root, { attributes: true, attributeFilter: ["disabled"], subtree: true });

  // Follow the stream only while the reader is at its end.
  let pinned = true;
  let end = 0; // the last position set here; above it, the reader has scrolled, even if the event is still to come
  document.addEventListener(
    "scroll",
    (event) => {
      const box = event.target;
      if (box.id === "summary") pinned = box.scrollHeight - box.scrollTop - box.clientHeight < 24;
    },
    true,
  );
  new MutationObserver(() => {
    const box = document.getElementById("summary");
    if (!box) return;
    const lowest = box.scrollHeight - box.clientHeight;
    if (lowest <= 0) pinned = true;
    else if (box.scrollTop < Math.min(end, lowest) - 24) pinned = false;
    if (pinned) box.scrollTop = box.scrollHeight;
    end = box.scrollTop;
  }).observe(root, { childList: true, subtree: true, characterData: true });

  // Touch has no hovering: a tap on an element with a title shows the title for a moment.
  document.addEventListener("pointerup", (event) => {
    if (event.pointerType === "mouse") return;
    const marked = event.target.closest("#board [title], #below [title]");
    if (marked && !marked.closest("button")) toast(marked.title);
  });
})();
