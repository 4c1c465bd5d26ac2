const ALIKE = 3; // most successful iterations in a row that are shown one by one
const OPEN_FAILED = 20; // most failed iterations that are open at first
const OPEN_GROUPS = 12; // a successful group with more steps is folded

/** The steps of a run as rows; some are open. Rows are for one `role=tree`. */
class Tree {
  constructor(run, columns, chosen) {
    this.steps = run.steps || [];
    this.columns = columns;
    this.chosen = chosen;
    this.below = new Map();
    this.steps.forEach((step, number) => push(this.below, step.parent ?? -1, number));
    this.fine = this.steps.map((step) => FINE.has(step.status));
    for (let number = this.steps.length - 1; number >= 0; number -= 1) {
      const { parent } = this.steps[number];
      if (parent !== undefined && !this.fine[number]) this.fine[parent] = false;
    }
    this.failed = 0;
    this.opened = new Set([...this.steps.keys()].filter((number) => this.opensItself(number)));
    this.selected = null;
    this.element = el("div", { role: "tree", "aria-label": "Steps", class: "tree" });
    this.draw();
  }

  children(number) {
    return this.below.get(number) || [];
  }

  opensItself(number) {
    const below = this.children(number);
    if (!below.length) return false;
    if (!this.fine[number]) return !this.isIteration(number) || (this.failed += 1) <= OPEN_FAILED;
    return !this.isIteration(below[0]) && !this.isIteration(number) && below.length <= OPEN_GROUPS;
  }

  isIteration(number) {
    return this.steps[number].label.startsWith("[");
  }

  /** List the rows that are to be seen: steps, and folds of successful iterations. */
  rows(parent = -1, level = 1) {
    return this.folded(this.children(parent)).flatMap((each) => {
      const row = { ...each, parent, level, opens: each.fold ? true : this.children(each.key).length > 0 };
      const isOpen = this.opened.has(row.key);
      if (each.fold) return [row, ...(isOpen ? each.fold.flatMap((number) => this.rowsOf(number, row.key, level + 1)) : [])];
      return [row, ...(isOpen ? this.rows(each.key, level + 1) : [])];
    });
  }

  rowsOf(number, parent, level) {
    const row = { key: number, parent, level, opens: this.children(number).length > 0 };
    return [row, ...(this.opened.has(number) ? this.rows(number, level + 1) : [])];
  }

  /** Put successful iterations that follow each other into one row. */
  folded(numbers) {
    const rows = [];
    let alike = [];
    const end = () => {
      if (alike.length > ALIKE) rows.push({ key: `fold ${alike[0]}`, fold: alike });
      else rows.push(...alike.map((key) => ({ key })));
      alike = [];
    };
    for (const number of numbers) {
      if (this.isIteration(number) && this.fine[number]) alike.push(number);
      else {
        end();
        rows.push({ key: number });
      }
    }
    end();
    return rows;
  }

  draw() {
    const hadFocus = this.element.contains(document.activeElement);
    this.shown = this.rows();
    this.places = new Map(this.shown.map((row, place) => [row.key, place]));
    this.element.replaceChildren(...this.shown.map((row) => this.line(row)));
    this.mark(hadFocus);
  }

  line(row) {
    const step = row.fold ? null : this.steps[row.key];
    const line = el("div", {
      role: "treeitem", class: "row", "aria-level": row.level, "aria-selected": "false", tabindex: "-1",
      "aria-expanded": row.opens ? String(this.opened.has(row.key)) : null,
      onclick: (event) => this.clicked(row, event),
    },
    el("span", { class: "twisty", "aria-hidden": "true" }, row.opens ? "›" : ""),
    step ? this.name(row.key) : span("name", outcome("ok", true), span("alike", `${row.fold.length} iterations`),
      span("dim", `${this.steps[row.fold[0]].label} to ${this.steps[row.fold.at(-1)].label}`)),
    ...this.columns(this, row.fold || [row.key]));
    line.style.setProperty("--level", row.level);
    return line;
  }

  name(number) {
    const step = this.steps[number];
    const below = this.children(number);
    const does = below.length ? this.counts(below) : step.does;
    return span("name", outcome(step.status, FINE.has(step.status) && step.status !== "skipped"), span("label", step.label), span("dim", does || ""));
  }

  /** Say how many iterations a loop had, and how they ended. */
  counts(below) {
    if (!this.isIteration(below[0])) return "";
    const failed = below.filter((number) => !this.fine[number]).length;
    return `${counted(below.length, "iteration")}${failed ? `, ${failed} not ok` : ""}`;
  }

  clicked(row, event) {
    if (row.opens && (row.fold || event.target.closest(".twisty"))) {
      if (row.fold) this.selected = row.key;
      this.toggle(row.key);
    } else this.choose(row.key, "click");
  }

  toggle(key, open = !this.opened.has(key)) {
    if (open) this.opened.add(key);
    else this.opened.delete(key);
    this.draw();
  }

  choose(key, how) {
    this.selected = key;
    this.mark(how !== "open");
    if (typeof key === "number") this.chosen(this.steps[key], how);
  }

  /** Show the selected row as such; only it is a stop of the Tab key. */
  mark(focus) {
    const place = this.places.get(this.selected) ?? 0;
    [...this.element.children].forEach((line, number) => {
      line.setAttribute("aria-selected", String(this.shown[number].key === this.selected));
      line.tabIndex = number === place ? 0 : -1;
    });
    const line = this.element.children[place];
    if (line && focus) line.focus({ preventScroll: true });
    if (line && this.places.has(this.selected)) line.scrollIntoView({ block: "nearest" });
  }

  /** Select the step at a path, and open what contains it. */
  reveal(path) {
    const number = this.steps.findIndex((step) => step.path === path);
    if (number < 0) return false;
    if (number === this.selected) return true;
    for (let above = this.steps[number].parent; above !== undefined; above = this.steps[above].parent) this.opened.add(above);
    for (let inside = number; inside !== undefined; inside = this.steps[inside].parent) this.openFold(inside);
    this.selected = number;
    this.draw();
    return true;
  }

  openFold(number) {
    const rows = this.folded(this.children(this.steps[number].parent ?? -1));
    const fold = rows.find((row) => row.fold && row.fold.includes(number));
    if (fold) this.opened.add(fold.key);
  }

  step(by) {
    const place = this.places.get(this.selected);
    const next = place === undefined ? 0 : Math.min(Math.max(place + by, 0), this.shown.length - 1);
    if (this.shown[next]) this.choose(this.shown[next].key, "move");
  }

  forward() {
    const row = this.shown[this.places.get(this.selected)];
    if (row && row.opens && !this.opened.has(row.key)) this.toggle(row.key, true);
    else if (row && row.opens) this.step(1);
    else if (row) this.choose(row.key, "click");
  }

  back() {
    const row = this.shown[this.places.get(this.selected)];
    if (!row) return;
    if (row.opens && this.opened.has(row.key)) this.toggle(row.key, false);
    else if (row.parent !== -1) this.choose(row.parent, "move");
  }

  /** The paths of failures, the innermost ones only. */
  failures() {
    const isFailure = (number) => !FINE.has(this.steps[number].status) && this.children(number).every((each) => this.fine[each]);
    return [...this.steps.keys()].filter(isFailure).map((number) => this.steps[number].path);
  }
}

function push(map, key, value) {
  if (map.has(key)) map.get(key).push(value);
  else map.set(key, [value]);
}
