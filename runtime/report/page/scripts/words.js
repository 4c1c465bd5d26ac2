/** How outcomes are shown: a sign beside the word, and the kind that colours both. */
const OUTCOMES = {
  passed: ["✓", "good"], ok: ["✓", "good"], recovered: ["✓", "good"],
  flaky: ["≈", "odd"], tolerated: ["≈", "odd"], redo: ["↺", "odd"],
  failed: ["✕", "bad"], error: ["✕", "bad"], died: ["✕", "bad"], damaged: ["✕", "bad"], interrupted: ["✕", "bad"],
  paused: ["‖", "wait"], "out-of-budget": ["‖", "wait"], replaced: ["⇄", "quiet"],
  skipped: ["–", "quiet"], running: ["…", "quiet"], begun: ["…", "quiet"], open: ["…", "odd"],
};
const FINE = new Set(["ok", "skipped", "recovered"]);
const FINE_CASES = new Set(["passed", "skipped"]);
const LINE = 90; // most characters of a value on one line
const ROWS = 20; // most rows of a table that are shown at once

function kindOf(status) {
  return (OUTCOMES[status] || ["?", "quiet"])[1];
}

/** The sign of an outcome, and its word: hidden from the eye where `brief`, never from a screen reader. */
function outcome(status, brief = false) {
  const [sign, kind] = OUTCOMES[status] || ["?", "quiet"];
  return el("span", { class: `outcome ${kind}` },
    el("span", { class: "sign", "aria-hidden": "true" }, sign), span(brief ? "unseen" : "word", status));
}

function counted(number, noun) {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

function duration(seconds) {
  if (seconds === undefined || seconds === null) return "";
  if (seconds > 0 && seconds < 0.0995) return `${Math.max(Math.round(seconds * 1000), 1)} ms`;
  if (seconds < 9.95) return `${Math.max(seconds, 0).toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  const minutes = Math.floor(whole / 60);
  const two = (number) => String(number).padStart(2, "0");
  return minutes < 60 ? `${minutes} min ${two(whole % 60)} s` : `${Math.floor(minutes / 60)} h ${two(minutes % 60)} min`;
}

/** Quote a word for a shell. */
function quoted(word) {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\"'\"'")}'`;
}

/** A text of the page's data, perhaps shortened, as plain text. */
function plain(content) {
  if (typeof content === "string") return content;
  return content.json === undefined ? content.text : JSON.stringify(content.json);
}

/** What a text lost. */
function lost(content) {
  return content.more ? el("p", { class: "note" }, `${content.more.toLocaleString("en")} more characters are left out here.`) : null;
}

/** A text: on the line if it is short, else in a block. */
function textOf(content, kind = "") {
  const text = plain(content);
  const isBlock = text.length > LINE || text.includes("\n");
  return [isBlock ? el("pre", { class: kind, tabindex: text.length > 1500 ? "0" : null }, text) : el("code", { class: kind }, text), lost(content)];
}

/** A value: a list of alike objects is a table. */
function valueOf(content) {
  if (typeof content === "string" || content.json === undefined) return textOf(content);
  const value = content.json;
  if (isTable(value)) return tableOfValue(value);
  if (value === null || typeof value !== "object") return el("code", {}, String(value));
  if (!Array.isArray(value) && Object.keys(value).length && Object.values(value).every(isFlat)) return textOf(pairsOf(value));
  const line = JSON.stringify(value);
  return textOf(line.length <= LINE ? line : JSON.stringify(value, null, 2));
}

/** The names and values of an object, as the command prints them. */
function pairsOf(value) {
  const pairs = Object.entries(value).map(([name, each]) => `${name}=${/^[\w./:#*-]+$/.test(String(each)) ? each : JSON.stringify(each)}`);
  const line = pairs.join("  ");
  return line.length <= LINE && !line.includes("\n") ? line : pairs.join("\n");
}

function isFlat(value) {
  return value === null || typeof value !== "object";
}

function isTable(value) {
  return Array.isArray(value) && value.length > 0 && value.every((each) =>
    !isFlat(each) && !Array.isArray(each) && Object.keys(each).length > 0 && Object.keys(each).length <= 8 &&
    Object.values(each).every(isFlat) && String(Object.keys(each)) === String(Object.keys(value[0])));
}

function tableOfValue(value) {
  const names = Object.keys(value[0]);
  const drawn = (rows) => tableOf(names, rows.map((row) => names.map((name) => String(row[name]))));
  const place = el("div", {}, drawn(value.slice(0, ROWS)));
  if (value.length > ROWS) {
    place.append(button(`Show all ${counted(value.length, "row")}`, () => place.replaceChildren(drawn(value)), { class: "more" }));
  }
  return place;
}

/** The lines of an error's facts. */
function factsOf(facts) {
  return rowsOf((facts || []).map(([name, texts]) =>
    [name, texts.length > 1 ? el("ul", {}, texts.map((each) => el("li", {}, plain(each), lost(each)))) : textOf(texts[0])]));
}

function messageOf(error) {
  return [el("p", { class: "message" }, plain(error.message), " ", el("code", { class: "code" }, error.code)), lost(error.message)];
}

function errorBox(error, kind = "bad") {
  if (!error) return null;
  return el("div", { class: `error ${kind}` }, messageOf(error),
    factsOf(error.facts), error.fix ? el("p", { class: "fix" }, span("who", "Fix"), error.fix) : null);
}
