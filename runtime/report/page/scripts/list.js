const ORDER = ["failed", "error", "died", "interrupted", "out-of-budget", "paused", "flaky", "replaced", "running", "begun", "skipped", "passed"];
const SORTS = { order: "in order", duration: "longest first", outcome: "failures first" };

/** The list of cases with its filter. It is kept while a case is open, and says what comes next. */
class CaseList {
  constructor() {
    this.route = { view: "cases", status: [], text: "", live: false, sort: "order" };
    this.wantsFilter = false;
    this.costs = report.cases.some((each) => each.cost);
  }

  address() {
    return writeRoute(this.route);
  }

  draw(route) {
    this.route = route;
    this.search = el("input", { type: "search", placeholder: "Filter", "aria-label": "Filter cases by name, path, tag or error", oninput: () => move({ text: this.search.value }) });
    this.chips = el("div", { class: "chips", role: "group", "aria-label": "Outcomes" });
    this.rows = el("tbody", {});
    this.note = el("p", { class: "note", role: "status" });
    this.sort = el("select", { "aria-label": "Order", onchange: () => move({ sort: this.sort.value }) },
      Object.entries(SORTS).map(([name, text]) => el("option", { value: name }, text)));
    this.element = el("main", { id: "page", class: "cases" },
      el("header", { class: "head" }, el("h1", {}, report.title), el("p", { class: "about" }, this.about().map((each) => span("dim", each)))),
      el("div", { class: "tools" }, this.search, this.chips, this.sort),
      el("table", { class: "list" }, el("thead", {}, el("tr", {}, ["Outcome", "Case", "File", "Time", ...(this.costs ? ["Cost"] : [])].map((each) => el("th", { scope: "col" }, each)))), this.rows),
      this.note);
    this.update();
    return this;
  }

  about() {
    const seconds = report.cases.reduce((sum, each) => sum + (each.seconds || 0), 0);
    const elsewhere = report.elsewhere ? `${counted(report.elsewhere, "case")} in other shards` : "";
    return present([report.started, `${duration(seconds)} of runs`, report.shard, elsewhere]);
  }

  /** Show other cases of the list. */
  follow(route) {
    if (route.view !== "cases") return false;
    this.route = route;
    this.update();
    return true;
  }

  enter(before) {
    if (this.wantsFilter) this.search.focus();
    else if (before.route.view === "case") this.focus(before.route.case);
    this.wantsFilter = false;
  }

  update() {
    if (this.search.value !== this.route.text) this.search.value = this.route.text;
    this.sort.value = this.route.sort;
    this.drawChips();
    const shown = this.shown();
    this.rows.replaceChildren(...shown.map((number) => this.row(report.cases[number], number)));
    this.note.textContent = shown.length ? "" : "No case matches.";
  }

  drawChips() {
    const focused = document.activeElement && document.activeElement.dataset.status;
    const counts = new Map();
    for (const each of report.cases) counts.set(each.status, (counts.get(each.status) || 0) + 1);
    const { status, live } = this.route;
    const chip = (name, pressed, act, ...children) => button(present(children)[0], act, { class: "chip", "aria-pressed": String(pressed), "data-status": name });
    const toggled = (name) => (status.includes(name) ? status.filter((each) => each !== name) : [...status, name]);
    const lives = report.cases.filter((each) => each.live).length;
    this.chips.replaceChildren(...present([
      chip("all", !status.length && !live, () => move({ status: [], live: false }), span("", "all ", el("b", {}, report.cases.length))),
      ...ORDER.filter((name) => counts.has(name)).map((name) =>
        chip(name, status.includes(name), () => move({ status: toggled(name) }), span("", outcome(name), " ", el("b", {}, counts.get(name))))),
      lives ? chip("live", live, () => move({ live: !live }), span("", "live model ", el("b", {}, lives))) : null,
    ]));
    if (focused) this.chips.querySelector(`[data-status="${focused}"]`)?.focus();
  }

  /** The numbers of the cases that the filter lets through, in their order. */
  shown() {
    const { status, text, live, sort } = this.route;
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = (each) => (!status.length || status.includes(each.status)) && (!live || each.live) && words.every((word) => searched(each).includes(word));
    const numbers = [...report.cases.keys()].filter((number) => fits(report.cases[number]));
    const by = {
      duration: (number) => -(report.cases[number].seconds || 0),
      outcome: (number) => ORDER.indexOf(report.cases[number].status),
    }[sort];
    return by ? numbers.sort((one, two) => by(one) - by(two) || one - two) : numbers;
  }

  row(shown, number) {
    const error = shown.error && !FINE_CASES.has(shown.status) ? el("div", { class: "why" }, plain(shown.error.message), shown.path ? el("code", {}, shown.path) : null) : null;
    const name = el("a", { href: writeRoute(caseRoute(number, [])) }, shown.name);
    return el("tr", { onclick: (event) => { if (!event.target.closest("a")) name.click(); } },
      el("td", { class: "is" }, outcome(shown.status)),
      el("td", { class: "what" }, name, shown.live ? liveMark() : null, (shown.tags || []).map((tag) => span("tag", tag)),
        (shown.runs || []).length > 1 ? span("tag", counted(shown.runs.length, "run")) : null, error),
      el("td", { class: "file" }, shown.file),
      el("td", { class: "number" }, shown.took || ""), this.costs ? el("td", { class: "number" }, shown.cost || "") : null);
  }

  /** The case before or after another one in the list. */
  next(number, by) {
    const shown = this.shown();
    return shown[shown.indexOf(number) + by] ?? null;
  }

  nextFailed(after) {
    const shown = this.shown();
    return shown.slice(shown.indexOf(after) + 1).find((number) => !FINE_CASES.has(report.cases[number].status)) ?? null;
  }

  links() {
    return [...this.rows.querySelectorAll("td.what > a")];
  }

  /** Put the focus on a case: on the one that was open. */
  focus(number) {
    this.links()[this.shown().indexOf(number)]?.focus();
  }

  step(by) {
    const links = this.links();
    const at = links.indexOf(document.activeElement);
    const next = links[at < 0 ? 0 : Math.min(Math.max(at + by, 0), links.length - 1)];
    if (next) next.focus();
  }

  keys() {
    const open = () => { if (this.links().includes(document.activeElement)) document.activeElement.click(); };
    return {
      j: () => this.step(1), ArrowDown: () => this.step(1), k: () => this.step(-1), ArrowUp: () => this.step(-1),
      Enter: open, ArrowRight: open,
      f: () => {
        const at = this.links().indexOf(document.activeElement);
        const number = this.nextFailed(at < 0 ? undefined : this.shown()[at]);
        if (number === null) announce("No other failure");
        else this.focus(number);
      },
      "/": () => this.search.focus(),
      Escape: () => { move({ status: [], text: "", live: false }); },
    };
  }
}

const texts = new Map();

/** What the filter searches of a case. */
function searched(each) {
  if (!texts.has(each)) {
    const error = each.error ? `${each.error.code} ${plain(each.error.message)}` : "";
    texts.set(each, present([each.name, each.case, each.row, each.path, ...(each.tags || []), error]).join("\n").toLowerCase());
  }
  return texts.get(each);
}
