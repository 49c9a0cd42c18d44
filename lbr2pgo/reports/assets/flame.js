"use strict";
// Flame graphs by d3-flame-graph, and the same as a tree; frames come flat, callers before callees.

function treeOf({ frames }) {
  const path = [];
  for (const [depth, name, value, own, before] of frames) {
    const node = { name: text(name), value, own, before, children: [] };
    path[depth - 1]?.children.push(node);
    path[depth] = node;
  }
  return path[0];
}
const clone = (node, children) => ({ ...node, children, value: node.own + children.reduce((sum, child) => sum + child.value, 0) });

// Only stacks through functions that match, or only those that don't pass any.
function focused(node, words) {
  if (node.name.toLowerCase().includes(words)) return node;
  return clone({ ...node, own: 0 }, node.children.map((child) => focused(child, words)).filter((child) => child.value));
}
const without = (node, words) => clone(node, node.children.filter((child) => !child.name.toLowerCase().includes(words)).map((child) => without(child, words)));

// The same samples from the functions that ran to those that called them.
function inverted(root) {
  const top = { name: root.name, value: 0, own: 0, children: [] };
  const follow = (node, callers) => {
    const add = (at, amount) => { at.value += amount; };
    if (node.own && callers.length) {
      let at = top;
      add(at, node.own);
      for (const name of [node.name, ...callers.slice(0, -1)]) {
        let next = at.children.find((child) => child.name === name);
        if (!next) at.children.push(next = { name, value: 0, own: 0, children: [] });
        add(at = next, node.own);
      }
      at.own += node.own;
    }
    node.children.forEach((child) => follow(child, [node.name, ...callers]));
  };
  follow(root, []);
  return top;
}

const PALE = ["#ffd2b8", "#ffe1a8", "#f9c8c8", "#f4d8a0", "#fbc6a4", "#ffd9d0"];
const hue = (name) => PALE[[...name].reduce((sum, letter) => (31 * sum + letter.codePointAt(0)) % 6, 0)];
// Red has more than before, blue less; the stronger, the more of the whole that is.
function changed(node, whole) {
  const part = Math.max(-1, Math.min(1, 20 * (node.value - node.before) / whole));
  return `color-mix(in srgb, ${part > 0 ? "#ff8f70" : "#7fb4f5"} ${Math.round(100 * Math.abs(part))}%, #eeeeee)`;
}

function buildFlame(place, select, isChange) {
  const flames = data.flames.filter((flame) => !isChange || flame.frames[0].length > 4);
  const choice = make("select", {}, ...flames.map((flame, i) => make("option", { value: i }, flame.title)));
  const [find, focus, ignore] = ["Find", "Focus", "Ignore"].map((words) => make("input", { type: "search", placeholder: words, "aria-label": words }));
  const invert = make("input", { type: "checkbox" });
  const said = make("p", { class: "faint", "aria-live": "polite" });
  const drawing = make("div", { class: "flame", tabindex: 0, role: "application", "aria-label": "Flame graph: arrow keys move, Enter zooms in, Escape out" });
  place.append(
    make(
      "div", { class: "tools" }, make("h2", {}, isChange ? "Differential flame graph" : "Flame graph"),
      flames.length > 1 ? labelled("of", choice) : null, find, focus, ignore, isChange ? null : labelled("inverted", invert),
    ),
    said, drawing,
    notes([
      "Wider is more; callers stand above what they call, inverted below. A click or Enter zooms in.",
      "Of “Calls” each function has the instructions that ran in it, shared among its callers by how often they called it.",
      ...(isChange ? ["Red frames have a larger share than before, blue ones a smaller."] : []),
    ]),
  );
  let chart = null, at = null;
  const frames = () => d3.select(drawing).selectAll("g.frame");
  const mark = (node) => {
    at = node;
    frames().classed("at", (each) => each === at);
    const { name, value, own, before } = at.data, { unit } = flames[Number(choice.value)];
    const whole = chart.root.value;
    const was = before == null ? "" : `, before ${percent(before / whole)}`;
    said.textContent = `${name}: ${percent(value / whole)} of ${unit}${was}`;
    const found = functions.byName.get(name);
    select(
      name,
      [
        [unit, grouped(value)], ["share", percent(value / whole)], ["before", before == null ? null : percent(before / whole)],
        ["own", grouped(own)], ["code", found && link(`f-${found.start}`, "open")],
      ],
    );
  };
  const show = () => {
    let root = treeOf(flames[Number(choice.value)]);
    if (focus.value) root = focused(root, focus.value.toLowerCase());
    if (ignore.value) root = without(root, ignore.value.toLowerCase());
    if (invert.checked) root = inverted(root);
    drawing.replaceChildren();
    chart = flamegraph().width(drawing.clientWidth || 800).cellHeight(20).minFrameSize(2).inverted(true).transitionDuration(0)
      .sort((a, b) => b.value - a.value).setLabelHandler(({ data: { name, value } }) => `${name}: ${grouped(value)}`)
      .setColorMapper((node) => (node.highlight ? "#b9dcff" : isChange ? changed(node.data, root.value) : hue(node.data.name)))
      .setSearchMatch((node, words) => node.data.name.toLowerCase().includes(words.toLowerCase())).onClick(mark);
    chart.root = root;
    if (!root.value) { said.textContent = "Nothing left."; return; }
    d3.select(drawing).datum(root).call(chart);
    at = frames().data()[0];
    seek();
  };
  const seek = () => {
    if (!find.value) { chart.clear(); return; }
    chart.search(find.value);
    const hits = frames().data().filter((node) => node.highlight && !node.ancestors().slice(1).some((each) => each.highlight));
    said.textContent = `${percent(hits.reduce((sum, node) => sum + node.data.value, 0) / chart.root.value)} in what “${find.value}” matches`;
  };
  drawing.addEventListener("keydown", (event) => {
    const beside = (step) => at.parent?.children[at.parent.children.indexOf(at) + step];
    const next = { ArrowDown: () => at.children?.[0], ArrowUp: () => at.parent, ArrowRight: () => beside(1), ArrowLeft: () => beside(-1) }[event.key];
    if (next) mark(next() ?? at);
    else if (event.key === "Enter") chart.zoomTo(at);
    else if (event.key === "Escape") chart.resetZoom();
    else return;
    event.preventDefault();
  });
  [choice, focus, ignore, invert].forEach((input) => input.addEventListener("input", show));
  find.addEventListener("input", seek);
  new ResizeObserver(() => { if (drawing.clientWidth && chart?.width() !== drawing.clientWidth) show(); }).observe(drawing);
  show();
}

function buildCallTree(place, select) {
  const flame = data.flames[0], whole = flame.frames[0][2];
  let id = 0;
  const row = ({ name, value, own, children }) => ({ id: id++, name, value, own, ...(children.length ? { _children: children.map(row) } : {}) });
  const drawn = make("div", { class: "table" });
  place.append(make("div", { class: "tools" }, make("h2", {}, `Call tree: ${flame.title.toLowerCase()}`)), drawn);
  const part = (field, title) => ({
    title, field, width: 140, hozAlign: "right", cssClass: "number", headerSortStartingDir: "desc",
    titleFormatter: () => button(title, () => {}),
    formatter: (cell) => make("span", {}, bar(cell.getValue() / whole), ` ${percent(cell.getValue() / whole)}`),
  });
  const { table: made } = tabulator(drawn, "Call tree", {
    data: [row(treeOf(flame))], dataTree: true, dataTreeStartExpanded: (_, level) => level < 2,
    columns: [
      { title: "function", field: "name", minWidth: 160, titleFormatter: () => button("function", () => {}), formatter: (cell) => { const found = functions.byName.get(cell.getValue()); return make("span", {}, link(found && `f-${found.start}`, cell.getValue(), { tabindex: -1 })); } },
      part("value", "total"), part("own", "own"),
    ],
  });
  made.on("rowSelected", (selected) => { const { name, value, own } = selected.getData(); select(name, [[flame.unit, grouped(value)], ["own", grouped(own)]]); });
}
