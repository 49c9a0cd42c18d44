"use strict";
// Functions: source lines with their instructions on demand, code, and control flow.

const HEATS = 9;
const heatOf = (share) => Math.round(HEATS * Math.sqrt(share));
const column = (table, name) => table.columns.findIndex((each) => each.name === name);
const chains = new Map(); // blocks to be shown in the picture of a function, by its anchor

// The source line of an instruction that is shown, and its words.
function lineOf(address) {
  const view = data.functions.find((each) => each.anchor === codeAnchors.get(address));
  if (!view) return "";
  const at = column(view.code, "address"), line = column(view.code, "line");
  const row = view.parts.find((part) => text(part[at]) === address);
  const place = line < 0 ? "" : text(row[line]);
  const source = view.source?.rows.find((each) => text(each[0]) === place);
  const words = source && text(source[column(view.source, "text")]);
  return words ? `${place} ${words.trim()}` : place;
}

// The words of some instructions from an address on.
function instructionsAt(view, address, count) {
  const at = column(view.code, "address"), words = column(view.code, "instruction");
  const rows = codeRows(view);
  const first = rows.findIndex((row) => text(row[at]) === address);
  return first < 0 ? [] : rows.slice(first, first + count).map((row) => text(row[words]));
}

function cells(table, row, largest) {
  const count = column(table, "count");
  return table.columns.map((each, i) => {
    const full = shown(each, row[i]);
    const made = make("td", { class: classOf(each) }, full);
    if (i === count && row[i]) made.classList.add(`h${heatOf(row[i] / largest)}`);
    return made;
  });
}
const largestOf = (table, rows) => Math.max(1, ...rows.map((row) => row[column(table, "count")] ?? 0));
function headOf(table, ...before) {
  const titles = table.columns.map((each) => make("th", { scope: "col", class: classOf(each) }, each.title));
  return make("thead", {}, make("tr", {}, ...before, ...titles));
}
function scrolled(kind, label, ...children) {
  return make("div", { class: `scroll ${kind}`, tabindex: 0, role: "region", "aria-label": label }, ...children);
}

function sourceOf(view) {
  const { source } = view;
  const largest = largestOf(source, source.rows);
  const of = Map.groupBy
    ? Map.groupBy(codeRows(view), (row) => row[column(view.code, "line")])
    : codeRows(view).reduce((all, row) => all.set(row[column(view.code, "line")], [...(all.get(row[column(view.code, "line")]) ?? []), row]), new Map());
  let before = null;
  const rows = source.rows.map((row) => {
    const [file, line] = splitLine(text(row[0]));
    const isGap = before && (before[0] !== file || before[1] + 1 !== line);
    before = [file, line];
    const instructions = of.get(row[0]) ?? [];
    const more = instructions.length
      ? button("▸", () => unfold(drawn, more, view, instructions), { "aria-label": `Instructions of line ${line}`, "aria-expanded": "false" }) : "";
    const drawn = make("tr", isGap ? { class: "gap" } : {}, make("td", { class: "more" }, more), ...cells(source, row, largest));
    return drawn;
  });
  const table = make("table", { class: "source" }, headOf(source, make("td", { class: "more" })), make("tbody", {}, ...rows));
  return [...noteList(source.notes), scrolled("code", `Source of ${text(view.name)}`, table)];
}
function splitLine(place) {
  const at = place.lastIndexOf(":");
  return [place.slice(0, at), Number(place.slice(at + 1))];
}
function codeRows(view) {
  return view.parts.filter((part) => part.length === view.code.columns.length);
}
function unfold(drawn, more, view, instructions) {
  const isOpen = more.getAttribute("aria-expanded") === "true";
  more.setAttribute("aria-expanded", String(!isOpen));
  more.textContent = isOpen ? "▸" : "▾";
  if (isOpen) { drawn.nextSibling.remove(); return; }
  const largest = largestOf(view.code, codeRows(view));
  const table = make("table", {}, ...instructions.map((row) => make("tr", {}, ...cells(view.code, row, largest))));
  drawn.after(make("tr", { class: "all" }, make("td", { colspan: drawn.cells.length }, table)));
}

function codeOf(view) {
  const { code } = view;
  const largest = largestOf(code, codeRows(view));
  const address = column(code, "address");
  const rows = view.parts.map((part) => {
    if (part.length !== code.columns.length) {
      const words = `${grouped(part[0], 0)} instructions not seen: ${part[1]} to ${part[2]}`;
      return make("tr", { class: "skipped" }, make("td", { colspan: code.columns.length }, words));
    }
    return make("tr", { id: `i-${text(part[address]).slice(2)}` }, ...cells(code, part, largest));
  });
  const table = make("table", {}, headOf(code), make("tbody", {}, ...rows));
  return [...noteList(code.notes), scrolled("code", `Code of ${text(view.name)}`, table)];
}

function buildFunction(view, place) {
  const graph = scrolled("drawing", `Control flow of ${text(view.name)}`);
  const parts = { Source: view.source?.rows.length ? sourceOf(view) : null, "Control flow": [make("p", {}, `${view.left_out}.`), graph], Instructions: codeOf(view) };
  for (const [title, children] of Object.entries(parts)) {
    if (children) place.append(make("h3", {}, title), ...children);
  }
  if (view.graph.nodes.length) drawGraph(graph, view.graph, chains.get(view.anchor) ?? []);
}

// Show a chain of blocks in the picture of their function.
function highlight(anchor, blocks) {
  chains.set(anchor, blocks);
  const details = document.getElementById(anchor);
  const place = details.querySelector(".body");
  if (place.childElementCount) {
    const drawing = place.querySelector(".drawing");
    drawing.replaceChildren();
    drawGraph(drawing, data.functions.find((view) => view.anchor === anchor).graph, blocks);
  }
  reveal(anchor);
  place.querySelector(".drawing").scrollIntoView({ block: "center" });
}
