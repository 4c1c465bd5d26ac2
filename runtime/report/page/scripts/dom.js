"use strict";

/** Make an element. Strings become text nodes, so nothing in them is live; addresses are our own. */
function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...present(children.flat(2)));
  return element;
}

/** Return the children that are there. */
function present(children) {
  return children.filter((each) => each !== null && each !== undefined && each !== "" && each !== false);
}

function span(kind, ...children) {
  return el("span", { class: kind }, ...children);
}

/** A part of the page with a heading. */
function section(title, ...children) {
  return present(children.flat(2)).length ? el("section", {}, el("h3", {}, title), ...children) : null;
}

function button(text, act, attributes = {}) {
  return el("button", { type: "button", onclick: act, ...attributes }, text);
}

/** A command with a button that copies it. */
function command(text) {
  const code = el("code", {}, text);
  return el("div", { class: "command" }, code, button("Copy", () => copy(code), { "aria-label": `Copy ${text}` }));
}

async function copy(code) {
  const copied = await copyText(code.textContent) || copySelected(code);
  announce(copied ? "Copied" : "Selected: copy it with your keyboard");
}

async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

/** Select what cannot be copied at once, and ask the browser for a copy of the selection. */
function copySelected(element) {
  getSelection().selectAllChildren(element);
  return document.execCommand("copy");
}

/** Say something to everybody: on the page for a moment, and to a screen reader. */
function announce(text) {
  const place = document.getElementById("said");
  place.textContent = text;
  clearTimeout(announce.timer);
  announce.timer = setTimeout(() => { place.textContent = ""; }, 2500);
}

/** A table of names and values. Each row is [name, content…]. */
function rowsOf(rows, kind = "facts") {
  if (!rows.length) return null;
  return el("table", { class: kind }, el("tbody", {}, rows.map(([name, ...contents]) =>
    el("tr", {}, el("th", { scope: "row" }, name), el("td", {}, contents)))));
}

/** A table with a line of headings. */
function tableOf(headings, rows) {
  const head = el("thead", {}, el("tr", {}, headings.map((each) => el("th", { scope: "col" }, each))));
  const body = rows.map((row) => el("tr", {}, row.map((each) => el("td", {}, each))));
  return el("div", { class: "wide" }, el("table", { class: "grid" }, head, el("tbody", {}, body)));
}

/** Something that opens on a click. */
function folded(summary, children, open = false) {
  return el("details", { open }, el("summary", {}, summary), el("div", { class: "inside" }, children));
}
