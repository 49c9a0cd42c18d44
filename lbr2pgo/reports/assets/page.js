"use strict";
// The page: colours, sections that are built when they are opened, links, search, printing.

// Colours: those of the system unless chosen; a browser may refuse to remember the choice.
const THEMES = { "": "as the system", light: "light", dark: "dark" };
const themeButton = document.getElementById("theme");
const remembered = (act) => { try { return act(localStorage); } catch { return null; } };
function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  themeButton.textContent = `Colours: ${THEMES[theme]}`;
  redrawn.forEach((redraw) => redraw());
}
themeButton.addEventListener("click", () => {
  const names = Object.keys(THEMES);
  const next = names[(names.indexOf(document.documentElement.dataset.theme ?? "") + 1) % names.length];
  remembered((store) => store.setItem("lbr2pgo-theme", next));
  setTheme(next);
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => redrawn.forEach((redraw) => redraw()));
const chosen = remembered((store) => store.getItem("lbr2pgo-theme"));
setTheme(chosen in THEMES ? chosen : "");

// Sections are built when they are first opened.
const tables = new Map();
const builders = new Map([
  ...data.tables.map((table) => [`t-${table.name}`, (place) => tables.set(`t-${table.name}`, new DataTable(table, place))]),
  ["charts", buildCharts],
  ["flame", buildFlame],
  ...data.functions.map((view) => [view.anchor, (place) => buildFunction(view, place)]),
]);
const ownerOf = (details) => details.id || details.parentElement.id;
function open(details) {
  details.open = true;
  const place = details.querySelector(":scope > .body");
  if (place && !place.childElementCount) builders.get(ownerOf(details))(place);
}
document.addEventListener("toggle", (event) => { if (event.target.open) open(event.target); }, true);
["t-hot-functions", "t-hot-branches"].forEach((id) => {
  const first = document.querySelector(`#${id} > details`);
  if (first) open(first);
});

// Links lead into closed sections, and to instructions of functions that are not built yet.
function reveal(id) {
  const owner = id.startsWith("i-") ? codeAnchors.get(`0x${id.slice(2)}`) : id;
  const around = document.getElementById(owner);
  const details = around?.matches("details") ? around : around?.querySelector(":scope > details");
  if (details && builders.has(ownerOf(details))) open(details);
  const target = document.getElementById(id);
  document.querySelectorAll(".target").forEach((each) => each.classList.remove("target"));
  target?.classList.add("target");
  target?.scrollIntoView({ block: id.startsWith("i-") ? "center" : "start" });
}
document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a[href^='#']");
  if (!link) return;
  const id = link.getAttribute("href").slice(1);
  if (link.dataset.search) {
    reveal(id);
    tables.get(id)?.filter(link.dataset.search);
  }
  if (location.hash === `#${id}`) reveal(id);
});
addEventListener("hashchange", () => reveal(location.hash.slice(1)));
if (location.hash) reveal(location.hash.slice(1));

// Where one is, in the table of contents.
const entries = new Map([...document.querySelectorAll("nav a")].map((link) => [link.getAttribute("href").slice(1), link]));
const seen = new IntersectionObserver((changes) => {
  for (const { isIntersecting, target } of changes) {
    if (isIntersecting) entries.get(target.id)?.setAttribute("aria-current", "location");
    else entries.get(target.id)?.removeAttribute("aria-current");
  }
}, { rootMargin: "0px 0px -60% 0px" });
document.querySelectorAll("main > section").forEach((section) => seen.observe(section));

// Search over everything: tables, functions, their source and instructions.
const MOST = 40;
function* hits(words) {
  for (const view of data.functions) {
    if (text(view.name).toLowerCase().includes(words)) yield [`#${view.anchor}`, `function ${text(view.name)}`];
  }
  for (const table of data.tables) {
    const count = table.rows.filter((row) => table.columns.some((each, i) => shown(each, row[i]).toLowerCase().includes(words))).length;
    if (count) yield [`#t-${table.name}`, `${text(table.title)}: ${count} row${count > 1 ? "s" : ""}`, words];
  }
  for (const view of data.functions) {
    const { code } = view;
    const at = column(code, "address");
    for (const part of codeRows(view)) {
      const line = code.columns.map((each, i) => shown(each, part[i])).join(" ");
      if (line.toLowerCase().includes(words)) yield [`#i-${text(part[at]).slice(2)}`, line];
    }
    for (const row of view.source?.rows ?? []) {
      const line = view.source.columns.map((each, i) => shown(each, row[i])).join(" ");
      if (line.toLowerCase().includes(words)) yield [`#${view.anchor}`, `source ${line}`];
    }
  }
}
const found = document.getElementById("found");
const searchBox = document.getElementById("search");
function find() {
  const words = searchBox.value.trim().toLowerCase();
  found.hidden = !words;
  if (!words) return;
  const all = [];
  for (const hit of hits(words)) if (all.push(hit) >= MOST) break;
  const items = all.map(([href, label, search]) => make("li", {}, make("a", search ? { href, "data-search": search } : { href }, shortened(label, 110))));
  found.replaceChildren(make("h2", {}, all.length ? `Found${all.length >= MOST ? `, the first ${MOST}` : ""}` : "Nothing found"), make("ul", {}, ...items));
}
searchBox.addEventListener("input", find);
document.getElementById("search-form").addEventListener("submit", (event) => {
  event.preventDefault();
  found.querySelector("a")?.focus();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && !event.target.matches("input, select")) { event.preventDefault(); searchBox.focus(); }
});

// On paper everything that is closed would be lost.
addEventListener("beforeprint", () => document.querySelectorAll("main > section details").forEach(open));
