const WHO = {
  asked: "Asked", answer: "Model", reasoning: "Reasoning", shown: "Result of a tool", failed: "No answer", did: "Did", open: "Open",
};
const PAGE_LINES = 12; // a page's text with more lines is folded

/** What a person asked of a model: the directive of a step, and what it was given. */
function directiveOf(step) {
  const args = Object.fromEntries(step.attempts[0].args || []);
  const text = args.instruction || args.task || args.goal;
  return text ? line("Directive", [], [text], "ours") : null;
}

/** The exchange of an attempt with a model. */
function talkOf(attempt) {
  return (attempt.thread || []).map((said) => {
    const about = [said.model, said.source, said.tokens, said.cost, said.took];
    if (said.who === "did") {
      return line(WHO.did, about, [], "act", el("p", {}, outcome(said.status, true), " ", el("code", {}, said.does)), errorBox(said.error));
    }
    const calls = (said.calls || []).map(([name, args]) => el("div", { class: "call" }, el("code", {}, name), " ", textOf(args)));
    const picture = pictureOf(said.picture, "The page as the model saw it");
    return line(WHO[said.who], about, said.text || [], said.who === "answer" ? "theirs" : "ours", calls, picture, errorBox(said.error));
  });
}

function line(who, about, texts, kind, ...more) {
  const head = el("div", { class: "speaker" }, span("who", who), present(about).map((each) => span("dim", each)));
  return el("div", { class: `said ${kind}` }, head, texts.map(spoken), ...more);
}

/** Our words, and in a frame the text of a page. */
function spoken(content, number) {
  const text = plain(content);
  if (!text) return null;
  if (number % 2 === 0) return [el("div", { class: /^[[{]/.test(text) ? "text data" : "text" }, text), lost(content)];
  const page = el("pre", { class: "theirs" }, text);
  const lines = text.split("\n").length;
  return [lines > PAGE_LINES ? folded(`Text of the page, ${counted(lines, "line")}`, [page]) : page, lost(content)];
}

/** The tab with all exchanges of a run, by step. */
function conversation(run, show) {
  const asked = (run.steps || []).filter((step) => (step.attempts || []).some((each) => each.thread));
  return asked.map((step) => el("section", { class: "exchange" },
    el("h3", {}, button(step.path, () => show(step.path), { class: "link" }), " ", outcome(step.status), span("dim", step.cost || "")),
    directiveOf(step), step.attempts.map((attempt) => talkOf(attempt))));
}
