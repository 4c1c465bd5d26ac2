const report = JSON.parse(document.getElementById("report").textContent);
const list = new CaseList();
let view = null;
let current = null;
let writing = 0;

/** Show a place; within a view the view itself does. */
function show(route) {
  current = route;
  if (view && view.follow(route)) return;
  const before = view;
  view = route.view === "cases" ? list.draw(route) : new CaseView(route);
  document.getElementById("page").replaceWith(view.element);
  document.title = route.view === "cases" ? report.title : `${report.cases[route.case].name} · ${report.cases[route.case].status}`;
  if (before) view.enter(before);
}

/** Open a place, as a new entry of the browser's history. */
function visit(route) {
  writeAddress();
  show(route);
  location.hash = writeRoute(route);
}

/** Move within a place. The address follows when the reader rests: browsers refuse to change it very often. */
function move(change) {
  show({ ...current, ...change });
  clearTimeout(writing);
  writing = setTimeout(writeAddress, 100);
}

function writeAddress() {
  clearTimeout(writing);
  if (location.hash !== writeRoute(current)) history.replaceState(null, "", writeRoute(current));
}

/** Follow a link of our own at once; with a key held, the browser opens it elsewhere. */
function follow(event) {
  const link = event.target.closest("a[href^='#']");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  visit(readRoute(link.getAttribute("href")));
}

function readAddress() {
  clearTimeout(writing);
  if (location.hash !== writeRoute(current)) show(readRoute());
}

setTheme(THEMES.includes(keptTheme()) ? keptTheme() : "auto");
document.body.prepend(el("div", { class: "corner" },
  button("Theme", nextTheme, { title: "Key t" }), button("Keys", help, { title: "Key ?" }), el("span", { id: "said", role: "status" })));
addEventListener("hashchange", readAddress);
addEventListener("click", follow);
addEventListener("keydown", pressed);
show(readRoute());
