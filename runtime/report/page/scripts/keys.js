const HELP = [
  ["/", "filter the cases"], ["j k  ↓ ↑", "move"], ["Enter  →", "open"], ["←", "fold, or move to what contains it"],
  ["f", "next failure"], ["1 … 5", "tabs of a run"], ["t", "theme: as the system has it, light, dark"], ["Esc", "back to the cases; clear the filter"], ["?", "this help"],
];
const THEMES = ["auto", "light", "dark"];

function help() {
  const dialog = el("dialog", { class: "help", "aria-label": "Keys", onclose: () => dialog.remove() },
    el("h2", {}, "Keys"), rowsOf(HELP.map(([keys, what]) => [el("kbd", {}, keys), what])), button("Close", () => dialog.close(), { autofocus: true }));
  document.body.append(dialog);
  dialog.showModal();
}

function nextTheme() {
  const next = THEMES[(THEMES.indexOf(document.documentElement.dataset.theme) + 1) % THEMES.length];
  setTheme(next);
  announce(`Theme: ${next}`);
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  try {
    localStorage.setItem("runops-theme", theme);
  } catch {
    // Some browsers keep nothing for pages from a disk.
  }
}

function keptTheme() {
  try {
    return localStorage.getItem("runops-theme");
  } catch {
    return null;
  }
}

/** Arrows move where they would not scroll what the reader is in. */
function isPlaceToMove(target) {
  return target.closest(".panel, .exchange, pre, dialog") === null;
}

function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (event.key.startsWith("Arrow") && !isPlaceToMove(event.target)) return;
  const isTyping = event.target.matches("input, select, textarea");
  if (isTyping && event.key !== "Escape") return;
  // A button and a link act by themselves on Enter, a summary too.
  if (event.key === "Enter" && event.target.closest("button, a, summary")) return;
  const act = { t: nextTheme, "?": help, ...view.keys() }[event.key];
  if (!act) return;
  event.preventDefault();
  if (isTyping) event.target.blur();
  act();
}
