/** What is shown is in the address: `#cases?…`, or `#case/CASE/RUN/TAB/STEP`. */
const TABS = ["steps", "timeline", "conversation", "evidence", "differences"];

function readRoute(address = location.hash) {
  const [place, query] = splitOnce(address.slice(1), "?");
  const [kind, ...parts] = place.split("/").map(decoded);
  const number = kind === "case" ? report.cases.findIndex((each) => each.case === parts[0]) : -1;
  if (number >= 0) return caseRoute(number, parts);
  if (report.cases.length === 1) return caseRoute(0, []);
  const given = new URLSearchParams(query);
  return {
    view: "cases",
    status: (given.get("status") || "").split(",").filter(Boolean),
    text: given.get("text") || "",
    live: given.get("live") === "1",
    sort: given.get("sort") || "order",
  };
}

function caseRoute(number, [, run, tab, step]) {
  const runs = report.cases[number].runs || [];
  const chosen = Number(run);
  return {
    view: "case", case: number,
    run: chosen >= 1 && chosen <= runs.length ? chosen : Math.max(runs.length, 1),
    tab: TABS.includes(tab) ? tab : "steps",
    step: step || "",
  };
}

function writeRoute(route) {
  if (route.view === "cases") {
    const given = new URLSearchParams();
    if (route.status.length) given.set("status", route.status.join(","));
    if (route.text) given.set("text", route.text);
    if (route.live) given.set("live", "1");
    if (route.sort !== "order") given.set("sort", route.sort);
    return `#cases${String(given) ? `?${given}` : ""}`;
  }
  const parts = [report.cases[route.case].case, String(route.run), route.tab, ...(route.step ? [route.step] : [])];
  return `#case/${parts.map(encodeURIComponent).join("/")}`;
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function splitOnce(text, mark) {
  const at = text.indexOf(mark);
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
}
