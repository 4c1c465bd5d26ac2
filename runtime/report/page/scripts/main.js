const report = JSON.parse(document.getElementById("report").textContent);
const list = new CaseList();
let view = list;

/** Draw what the address says. */
function draw() {
  const route = readRoute();
  if (route.view === "cases" ? view === list && list.follow(route) : view.follow && view !== list && view.follow(route)) return;
  const focusTab = view.focusTab;
  if (route.view === "cases") {
    list.draw(route);
    view = list;
  } else {
    view = new CaseView(route);
  }
  document.getElementById("page").replaceWith(view.element);
  document.title = route.view === "cases" ? report.title : `${report.cases[route.case].name} · ${report.cases[route.case].status}`;
  if (focusTab) document.querySelector("[role=tab][aria-selected=true]").focus();
  if (view === list && list.wantsFilter) list.search.focus();
  list.wantsFilter = false;
}

setTheme(THEMES.includes(keptTheme()) ? keptTheme() : "auto");
document.body.prepend(el("div", { class: "corner" },
  button("Theme", nextTheme, { title: "Key t" }), button("Keys", help, { title: "Key ?" }), el("span", { id: "said", role: "status" })));
addEventListener("hashchange", draw);
addEventListener("keydown", pressed);
draw();
