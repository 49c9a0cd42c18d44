"use strict";
// The page: places and their views, search, keys, colours.

const views = document.getElementById("views"), view = document.getElementById("view"), searchBox = document.getElementById("search");
const built = new Map(); // views by name, each with its element and what it offers
let functionList = null, current = null; // the function that is open

// What stands on which tab; a view is built when it is first opened.
function catalogue() {
  const tables = data.tables.map((table) => ({ name: `t-${table.name}`, tab: table.tab, title: text(table.title).replace(/, in .*/, ""), build: (place) => buildTable(table, place, tellRow) }));
  const some = (isThere, ...found) => (isThere ? found : []);
  return [
    { name: "overview", tab: "where", title: "Overview", build: (place) => { if (data.flames.length) buildFlame(place, tellFigures, false); } },
    ...some(data.functions?.rows.length, { name: "code", tab: "where", title: "Code" }, { name: "graph", tab: "layout", title: "Control flow" }),
    ...some(data.functions?.rows.length, { name: "functions", tab: "where", title: "Functions", build: (place) => buildTable({ ...data.functions, name: "functions" }, place, tellRow) }),
    ...some(
      data.flames.length, { name: "flame", tab: "where", title: "Flame graph", build: (place) => buildFlame(place, tellFigures, false) },
      { name: "calls", tab: "where", title: "Call tree", build: (place) => buildCallTree(place, tellFigures) },
    ),
    ...some(
      data.flames.some(({ frames }) => frames[0].length > 4),
      { name: "flame-changes", tab: "changes", title: "Differential flame graph", build: (place) => buildFlame(place, tellFigures, true) },
    ),
    { name: "quality", tab: "quality", title: "Recording" },
    ...tables,
    ...some(data.time_line, { name: "time-line", tab: "quality", title: "Time line", build: buildTimeLine }),
    ...some(data.start, { name: "start", tab: "layout", title: "Start", build: buildStart }),
    ...some(data.charts.length, { name: "charts", tab: "why", title: "Latency charts", build: buildCharts }),
  ];
}
let all = [];

// A place is the name of a view, of `f-HEX` and `g-HEX` code and graph of a function, and what in it.
function parsed(place) {
  const [head, ...rest] = place.split("/"), within = decodeURIComponent(rest.join("/"));
  if (/^[fg]-[0-9a-f]+$/.test(head)) return { name: head[0] === "f" ? "code" : "graph", start: head.slice(2), within };
  const first = all.find((each) => each.tab === head && each.name !== "graph");
  return { name: all.some((each) => each.name === head) ? head : first?.name ?? "overview", within };
}
const hrefOf = (each) => `#${each.name === "code" ? `f-${current}` : each.name === "graph" ? `g-${current}` : each.name}`;

function show(name) {
  const { tab, title } = all.find((each) => each.name === name);
  for (const entry of document.querySelectorAll("#tabs a")) {
    if (entry.dataset.tab === tab) entry.setAttribute("aria-current", "page"); else entry.removeAttribute("aria-current");
  }
  views.replaceChildren(...all.filter((each) => each.tab === tab).map((each) => make("a", { href: hrefOf(each), ...(each.name === name ? { "aria-current": "page" } : {}) }, each.title)));
  document.title = `${title} · ${document.body.dataset.title}`;
  for (const section of view.children) section.hidden = section.dataset.view !== name;
}
function sectionOf(name) {
  let section = view.querySelector(`[data-view="${name}"]`);
  if (!section) view.append(section = make("section", { "data-view": name }));
  return section;
}
function openView(name, within) {
  const section = sectionOf(name), { build } = all.find((each) => each.name === name);
  show(name);
  if (build && !built.has(name)) built.set(name, build(section) ?? {});
  const { filter, tell } = built.get(name) ?? {};
  if (within) filter?.(within);
  if (tell) tell(); else about.replaceChildren(hint);
}

const codes = new Map();
async function codeOf(start) {
  const detail = await detailOf(start);
  if (detail && !codes.has(start)) codes.set(start, new Code(detail));
  return codes.get(start) ?? null;
}
const state = { order: "source", code: null };
async function openFunction(name, start, within) {
  const found = functions.byStart.get(start), section = sectionOf(name);
  current = start;
  functionList?.show(start);
  const code = await codeOf(start);
  show(name);
  if (!code) {
    section.replaceChildren(
      make("h2", {}, found?.name ?? "No such function"),
      make(
        "p", {}, `Its code is not in this page, which holds that of the ${data.inside.length} hottest functions: `,
        make("code", {}, "--functions N"), " holds more, and ", make("code", {}, "lbr2pgo view --serve 0"), " all.",
      ),
    );
    if (found) tellFunction(found);
    state.code = null;
    return;
  }
  if (name === "graph") {
    section.replaceChildren();
    buildGraph(code, section, within ? within.split(",") : []);
    if (found) tellFunction(found);
    return;
  }
  if (state.code?.code !== code) {
    section.replaceChildren();
    state.code = new CodeView(code, section, state.code?.order ?? state.order, (what) => {
      const where = what.words !== undefined ? code.address(what.at) : encodeURIComponent(what.place);
      history.replaceState(null, "", `#f-${start}/${where}`);
      if (what.words !== undefined) tellInstruction(code, what); else tellLine(code, what);
    });
  }
  state.code.find(within);
}
function route() {
  const { name, start, within } = parsed(location.hash.slice(1) || "overview");
  if (name === "found") return;
  if (start || ["code", "graph"].includes(name)) openFunction(name, start ?? current, within); else openView(name, within);
}

// Search everything: functions, tables, and the code and source of functions in the page.
const MOST = 60;
async function* hits(words) {
  for (const found of functions.rows) if (found.name.toLowerCase().includes(words)) yield [`f-${found.start}`, `function ${found.name}`];
  for (const table of data.tables) {
    const count = records(table).filter(contains(table, words)).length;
    if (count) yield [`t-${table.name}/${encodeURIComponent(words)}`, `${text(table.title)}: ${count} row${count > 1 ? "s" : ""}`];
  }
  for (const start of data.inside) {
    const code = await codeOf(start);
    for (const line of code.lines.values()) if (`${line.place} ${line.source ?? ""}`.toLowerCase().includes(words)) yield [
      `f-${start}/${encodeURIComponent(line.place)}`, `source ${line.place} ${line.source ?? ""}`,
    ];
    for (const each of code.code) {
      const words_ = `${inFile(code.address(each.at))} ${each.words ?? ""}`;
      if (words_.toLowerCase().includes(words)) yield [`f-${start}/${code.address(each.at)}`, `${code.name}: ${words_}`];
    }
  }
}
async function search() {
  const words = searchBox.value.trim().toLowerCase(), found = document.getElementById("found");
  found.hidden = !words;
  if (!words) return;
  const items = [];
  for await (const [place, label] of hits(words)) {
    if (searchBox.value.trim().toLowerCase() !== words) return;
    items.push(make("li", {}, link(place, label)));
    if (items.length >= MOST) break;
  }
  found.replaceChildren(make("h2", {}, items.length ? `Found${items.length >= MOST ? `, the first ${MOST}` : ""}` : "Nothing found"), make("ul", {}, ...items));
}

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

const KEYS = {
  "/": () => searchBox.focus(),
  f: () => document.getElementById("function-search").focus(),
  n: () => state.code?.step(1),
  p: () => state.code?.step(-1),
  s: () => state.code?.turn("source"),
  a: () => state.code?.turn("assembly"),
  e: () => state.code?.fold(),
  g: () => { if (current) location.hash = `g-${current}`; },
  c: () => { if (current) location.hash = `f-${current}`; },
  "?": () => document.getElementById("keys").showModal(),
};
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !document.getElementById("found").hidden) { searchBox.value = ""; search(); }
  if (event.ctrlKey || event.altKey || event.metaKey || event.target.matches("input, select") || !(event.key in KEYS)) return;
  event.preventDefault();
  KEYS[event.key]();
});
document.getElementById("keys-button").addEventListener("click", KEYS["?"]);

async function start() {
  data = await unpacked(document.getElementById("data").textContent);
  indexFunctions();
  all = catalogue();
  current = functions.rows[0]?.start ?? null;
  if (data.functions?.rows.length) {
    functionList = buildFunctionList(document.getElementById("function-list"), document.getElementById("measure"), document.getElementById("function-search"));
    await functionList.built;
  }
  searchBox.addEventListener("input", search);
  document.getElementById("search-form").addEventListener("submit", (event) => { event.preventDefault(); document.querySelector("#found a")?.focus(); });
  document.getElementById("found").addEventListener("click", (event) => { if (event.target.closest("a")) { searchBox.value = ""; search(); } });
  addEventListener("hashchange", route);
  route();
  document.body.dataset.ready = "1";
}
start();
