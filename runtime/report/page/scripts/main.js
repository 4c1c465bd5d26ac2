const report = JSON.parse(document.getElementById("report").textContent);
const list = new CaseList();
let view = null;

/** Draw what the address says; within a view the view itself does. */
function draw() {
  const route = readRoute();
  if (view && view.follow(route)) return;
  const before = view;
  view = route.view === "cases" ? list.draw(route) : new CaseView(route);
  document.getElementById("page").replaceWith(view.element);
  document.title = route.view === "cases" ? report.title : `${report.cases[route.case].name} · ${report.cases[route.case].status}`;
  if (before) view.enter(before);
}

setTheme(THEMES.includes(keptTheme()) ? keptTheme() : "auto");
document.body.prepend(el("div", { class: "corner" },
  button("Theme", nextTheme, { title: "Key t" }), button("Keys", help, { title: "Key ?" }), el("span", { id: "said", role: "status" })));
addEventListener("hashchange", draw);
addEventListener("keydown", pressed);
draw();
