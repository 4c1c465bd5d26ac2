const TITLES = { steps: "Steps", timeline: "Timeline", conversation: "Conversation", evidence: "Evidence", differences: "Differences" };

/** One case, and one of its runs in tabs. */
class CaseView {
  constructor(route) {
    this.case = report.cases[route.case];
    this.run = (this.case.runs || [])[route.run - 1] || { run: null, status: this.case.status, error: this.case.error };
    this.route = route;
    this.parts = this.partsOf(route);
    this.element = el("main", { id: "page", class: "case" }, this.head(route), ...this.parts);
  }

  head(route) {
    const { case: shown, run } = this;
    const several = (shown.runs || []).length > 1;
    return el("header", { class: "head" },
      report.cases.length > 1 ? this.ways(route) : null,
      el("h1", { tabindex: "-1" }, outcome(shown.status), el("span", {}, shown.name), shown.live ? liveMark() : null),
      el("p", { class: "about" }, present([run.run, run.started, run.took, shown.cost, shown.host && `on ${shown.host}`]).map((each) => span("dim", each))),
      several ? this.runs(route) : null,
      (shown.notes || []).map((each) => el("p", { class: "note" }, each)),
      this.problem(),
      run.happened ? el("ul", { class: "happened" }, run.happened.map((each) => el("li", {}, each))) : null,
      run.facts ? folded("About this run", [rowsOf(run.facts), run.output === undefined ? null : section("Output", valueOf(run.output))]) : null);
  }

  ways(route) {
    const to = (by, word) => {
      const number = list.next(route.case, by);
      return number === null ? null : el("a", { href: writeRoute(caseRoute(number, [])), "aria-label": `${word} case` }, word);
    };
    return el("nav", { class: "ways", "aria-label": "Cases" },
      el("a", { href: list.address() }, "All cases"), span("rest"), to(-1, "Previous"), to(1, "Next"));
  }

  runs(route) {
    return el("nav", { class: "runs", "aria-label": "Runs of this case" }, this.case.runs.map((run, number) =>
      el("a", { href: writeRoute({ ...route, run: number + 1, tab: "steps", step: "" }), "aria-current": number + 1 === route.run ? "true" : null },
        `Run ${number + 1} `, outcome(run.status))));
  }

  /** Why the run ended, and the command to type next. The panel of the step says the rest. */
  problem() {
    const { run } = this;
    const error = run.error || (this.case.runs ? null : this.case.error);
    if (!error && !run.next) return null;
    const isAStep = (run.steps || []).some((step) => step.path === run.path && step.attempts);
    const at = run.path ? el("p", { class: "where" }, button(run.path, () => this.show(run.path), { class: "link" }),
      run.place ? span("dim", run.place) : null) : null;
    const kind = run.asks ? "wait" : "bad";
    const told = error && isAStep ? el("div", { class: `error ${kind}` }, messageOf(error), at) : [errorBox(error, kind), at];
    return el("div", { class: "problem" }, told, run.next ? command(run.next) : null);
  }

  /** The tabs, and the content of the one that the address names. */
  partsOf(route) {
    this.names = TABS.filter((name) => this.has(name));
    this.tab = this.names.includes(route.tab) ? route.tab : this.names[0];
    this.tree = this.panel = this.pair = null;
    return [this.tabs(), this.body(route)];
  }

  tabs() {
    return el("div", { role: "tablist", "aria-label": "Views of the run", class: "tabs" }, this.names.map((name, number) =>
      el("button", {
        type: "button", role: "tab", id: `tab-${name}`, "aria-selected": String(name === this.tab), "aria-controls": "tab",
        tabindex: name === this.tab ? "0" : "-1", title: `Key ${number + 1}`, onclick: () => this.turn(name),
        onkeydown: (event) => this.along(event, number),
      }, TITLES[name])));
  }

  has(name) {
    const { run } = this;
    switch (name) {
      case "conversation": return (run.steps || []).some((step) => (step.attempts || []).some((each) => each.thread));
      case "evidence": return Boolean(run.evidence || run.files || run.flags);
      case "differences": return Boolean(this.case.since_green || this.case.differed);
      default: return Boolean(run.steps);
    }
  }

  along(event, number) {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    event.preventDefault();
    event.stopPropagation();
    this.turn(this.names[(number + by + this.names.length) % this.names.length]);
  }

  /** Turn to another tab, and take the focus there. */
  turn(name) {
    this.focusTab = true;
    move({ tab: name });
  }

  body(route) {
    const { tab } = this;
    if (!tab) return el("p", { class: "note" }, this.nothing());
    return el("div", { role: "tabpanel", id: "tab", class: `tab ${tab}`, "aria-labelledby": `tab-${tab}` }, this.content(route));
  }

  content(route) {
    const show = (path) => this.show(path);
    switch (this.tab) {
      case "steps": return this.split(route);
      case "timeline": return this.timeline(route);
      case "conversation": return conversation(this.run, show);
      case "evidence": return evidence(this.run, show);
      default: return differences(this.case);
    }
  }

  nothing() {
    if (!this.run.run) return "No run was begun.";
    if (this.run.left_out) return `Its ${counted(this.run.left_out, "step")} are left out, to keep this page small: runops show ${this.run.run}`;
    return `This report does not have its steps: runops show ${this.run.run}`;
  }

  split(route) {
    this.panel = el("section", { class: "panel", "aria-label": "Step" });
    this.tree = new Tree(this.run, (tree, numbers) => [secondsOf(tree, numbers)], (step, how) => this.chose(step, how));
    this.pair = el("div", { class: "split" }, this.tree.element, this.panel);
    if (!this.select(route.step, true)) this.select(this.first(), false);
    return this.pair;
  }

  /** The step that is shown before one is chosen: the one that failed or asks, or the first. */
  first() {
    const { run } = this;
    const isStep = run.steps.some((step) => step.path === run.path);
    if (isStep) return run.path;
    return (run.status !== "passed" && this.tree.failures().at(-1)) || run.steps[0].path;
  }

  timeline(route) {
    const clock = new Clock(this.run);
    this.tree = new Tree(this.run, timeColumns(clock), (step, how) => this.chose(step, how));
    if (route.step) this.tree.reveal(route.step);
    return [axis(clock), this.tree.element];
  }

  /** Show a step that the reader chose, and write it into the address. */
  chose(step, how) {
    if (this.tab === "timeline" && how === "click") move({ tab: "steps", step: step.path });
    else move({ step: step.path });
    if (this.pair && how === "click") this.pair.classList.add("opened");
  }

  select(path, opened) {
    if (!this.tree.reveal(path) || !this.panel) return false;
    const step = this.tree.steps[this.tree.selected];
    const back = button("Back to the steps", () => this.pair.classList.remove("opened"), { class: "link back" });
    this.panel.replaceChildren(back, ...present(panelOf(this.run, this.tree, step, this.isLast() ? this.case.since_green || [] : []).flat(2)));
    this.panel.scrollTop = 0;
    if (opened) this.pair.classList.add("opened");
    return true;
  }

  isLast() {
    return this.route.run === (this.case.runs || []).length;
  }

  show(path) {
    move({ tab: "steps", step: path });
  }

  /** Show another tab or step of the same run. */
  follow(route) {
    if (route.view !== "case" || route.case !== this.route.case || route.run !== this.route.run) return false;
    const before = this.route;
    this.route = route;
    if (route.tab !== before.tab) this.replaceTab(route);
    else if (route.step !== before.step && this.tree) this.select(route.step || this.first(), false);
    return true;
  }

  replaceTab(route) {
    const old = this.parts;
    this.parts = this.partsOf(route);
    old.forEach((part, number) => part.replaceWith(this.parts[number]));
    if (this.focusTab) this.parts[0].querySelector("[aria-selected=true]").focus();
    this.focusTab = false;
  }

  enter() {
    this.element.querySelector("h1").focus();
    scrollTo(0, 0);
  }

  nextFailure() {
    const all = this.tree ? this.tree.failures() : [];
    const next = all[all.indexOf(this.route.step) + 1];
    if (next && next !== this.route.step) {
      move({ tab: "steps", step: next });
      return;
    }
    const number = list.nextFailed(this.route.case);
    if (number === null) announce("No other failure");
    else visit(caseRoute(number, []));
  }

  keys() {
    const tree = (act) => () => { if (this.tree) act(this.tree); };
    return {
      j: tree((each) => each.step(1)), ArrowDown: tree((each) => each.step(1)),
      k: tree((each) => each.step(-1)), ArrowUp: tree((each) => each.step(-1)),
      Enter: tree((each) => each.forward()), ArrowRight: tree((each) => each.forward()),
      ArrowLeft: tree((each) => each.back()),
      f: () => this.nextFailure(),
      Escape: () => { if (report.cases.length > 1) visit(list.route); },
      "/": () => { if (report.cases.length > 1) { list.wantsFilter = true; visit(list.route); } },
      ...Object.fromEntries(this.names.map((name, number) => [String(number + 1), () => move({ tab: name })])),
    };
  }
}

/** How the last run differs from the last that passed, and a flaky case's runs from each other. */
function differences(shown) {
  const drawn = (found) => found.length
    ? tableOf(["step", "what", "before", "after"], found.map((each) => [el("code", {}, each.path || "run"), [each.what, each.within ? el("div", {}, el("code", {}, each.within)) : null], valueOf(each.before), valueOf(each.after)]))
    : el("p", { class: "note" }, "None.");
  return [
    shown.since_green ? section(`Since the last run that passed${shown.green ? `, ${shown.green}` : ""}`, drawn(shown.since_green)) : null,
    shown.differed ? section("Between the run that failed and the one that passed", drawn(shown.differed)) : null,
  ];
}

function liveMark() {
  return el("span", { class: "live", title: "A model answered while it ran, so the same run may end differently" }, "live model");
}
