/** The picture with a SHA-256, if the page has it; a click shows it in its own size. */
function pictureOf(sha, about) {
  if (!sha || !Object.hasOwn(report.pictures, sha)) return null;
  const image = el("img", { alt: about, loading: "lazy" });
  image.src = report.pictures[sha];
  return button("", () => enlarge(image), { class: "picture", "aria-label": `${about}: enlarge` }).appendChild(image).parentElement;
}

function enlarge(image) {
  const large = el("img", { alt: image.alt });
  large.src = image.src;
  const dialog = el("dialog", { class: "large", "aria-label": image.alt, onclick: () => dialog.close(), onclose: () => dialog.remove() }, large);
  document.body.append(dialog);
  dialog.showModal();
}

const WITHOUT = {
  "too-fast": "the page went to another address before there was time for one",
  "secret-on-page": "the page showed a secret",
  "no-picture": "the tab was closed, showed a dialog, or did not answer",
  "engine-lacks": "this browser takes none",
};

/** A page as evidence shows it: its address, and its picture or why there is none. */
function viewOf(view, title) {
  const missing = view.none ? `No picture: ${WITHOUT[view.none] || view.none}.`
    : view.file ? `The picture is left out, to keep this page small: ${view.file.path}` : "No picture.";
  return el("figure", {},
    pictureOf(view.picture, `${title}: ${view.url || "page"}`) || el("p", { class: "note" }, missing),
    el("figcaption", {}, span("who", title), view.url ? el("code", {}, view.url) : null, view.title ? span("", view.title) : null,
      view.along ? span("note", `after ${view.along} as well`) : null));
}

/** The pages before and after a step, as far as evidence has them. */
function pagesOf(run, path) {
  for (const found of [...(run.evidence || [])].reverse()) {
    const at = found.views.findIndex((view) => view.path === path);
    if (at < 0) continue;
    const isFailure = at === found.views.length - 1;
    return el("div", { class: "views" },
      at > 0 ? viewOf(found.views[at - 1], "Before") : null, viewOf(found.views[at], isFailure ? "When it failed" : "After"));
  }
  return null;
}

const MESSAGES = { console: "console", error: "exception", request: "request" };

function messagesOf(found) {
  const rows = (found.messages || []).map((each) => [MESSAGES[each.kind] || each.kind,
    [present([each.status]).map((status) => span("code", `${status} `)), ...textOf(each.text)], each.url ? el("code", {}, each.url) : ""]);
  return rows.length ? tableOf(["what", "message", "address"], rows) : null;
}

function fileRows(files) {
  return rowsOf(files.map(([name, file]) => [name, el("code", {}, file.path), span("dim", `  ${file.size}`)]));
}

/** All that was kept of a failure. */
function evidenceOf(found) {
  const files = Object.entries({ "page as text": found.observation, trace: found.trace }).filter(([, file]) => file);
  return [
    found.dialog ? el("p", {}, "A dialog was open: ", el("code", {}, found.dialog)) : null,
    section("Messages of the page", messagesOf(found)),
    section("Files", fileRows(files), found.trace ? viewer(found.trace) : null),
  ];
}

/** The command that opens a trace. */
function viewer(file) {
  return command(`playwright show-trace ${quoted(file.path)}`);
}

/** The tab with the evidence of all failures, and the files of the run. */
function evidence(run, show) {
  const kept = (run.files || []).map((file) => [file.name, file]);
  return [
    ...(run.evidence || []).map((found) => el("section", { class: "exchange" },
      el("h3", {}, found.path ? button(found.path, () => show(found.path), { class: "link" }) : "The run"),
      el("div", { class: "views" }, found.views.map((view, number) =>
        viewOf(view, number === found.views.length - 1 ? "When it failed" : `After ${view.path}`))),
      evidenceOf(found))),
    section("Files that the run kept", fileRows(kept), (run.files || []).filter((file) => /^trace-.*\.zip$/.test(file.name)).map(viewer)),
    section("To check", (run.flags || []).map(flagOf)),
  ];
}

function flagOf(flag) {
  return el("div", { class: "error odd" }, messageOf(flag), factsOf(flag.facts));
}

/** The panel of one step. */
function panelOf(run, tree, step, since) {
  const last = (step.attempts || []).at(-1);
  const facts = present([step.type, last && last.action, last && last.effect !== "read" ? last.effect : "", duration(step.seconds), step.cost]);
  const changes = since.filter((each) => each.path === step.path).map(changeOf);
  const found = [...(run.evidence || [])].reverse().find((each) => each.path === step.path);
  return [
    el("header", {}, el("h2", {}, step.path), el("p", { class: "about" }, outcome(step.status), facts.map((each) => span("dim", each)))),
    last ? null : errorBox(step.error),
    attemptsOf(step),
    section("Page", pagesOf(run, step.path) || (step.page ? el("code", {}, step.page) : null)),
    found ? evidenceOf(found) : null,
    section("Since the last run that passed", changes),
    step.value === undefined ? null : section("Value", valueOf(step.value)),
    last ? null : section("Inside", insideOf(tree, step)),
    run.run ? section("In the terminal", command(`runops show ${run.run} --at ${quoted(step.path)}`)) : null,
  ];
}

function changeOf(change) {
  return el("div", { class: "change" }, span("dim", [change.what, change.within].filter(Boolean).join(" ")), valueOf(change.before), span("dim", "→"), valueOf(change.after));
}

function attemptsOf(step) {
  const attempts = step.attempts || [];
  if (attempts.length === 1) return attemptOf(step, attempts[0]);
  return attempts.map((attempt, number) => folded(
    [`Attempt ${number + 1} of ${attempts.length} `, outcome(attempt.status || "open"), span("dim", duration(attempt.seconds))],
    attemptOf(step, attempt), number === attempts.length - 1));
}

function attemptOf(step, attempt) {
  const inputs = (attempt.args || []).map(([name, value]) => [name, valueOf(value)]);
  return present([
    errorBox(attempt.error, step.status === "tolerated" ? "odd" : "bad"),
    attempt.verdict ? el("p", {}, "Found afterwards: the action is ", el("b", {}, attempt.verdict), ".") : null,
    section("Input", rowsOf(inputs)),
    section("To check", (attempt.flags || []).map(flagOf)),
    section("Closed meanwhile", (attempt.dismissed || []).map((each) => el("p", {}, each))),
    attempt.thread ? section("Conversation", talkOf(attempt)) : null,
  ]);
}

/** How the steps in a container ended. */
function insideOf(tree, step) {
  const counts = new Map();
  for (const number of tree.children(tree.steps.indexOf(step))) {
    const { status } = tree.steps[number];
    counts.set(status, (counts.get(status) || 0) + 1);
  }
  return el("p", { class: "about" }, [...counts].map(([status, number]) => span("", `${number} `, outcome(status))));
}
