"use strict";
// Flame graphs: frames come flat, callers before callees.

const ROW = 20; // pixels

function treeOf(frames) {
  const path = [];
  for (const [depth, name, value] of frames) {
    const node = { name: text(name), value, children: [], parent: path[depth - 1] ?? null };
    node.parent?.children.push(node);
    path[depth] = node;
  }
  return path[0];
}

// The same samples from the functions that ran to those that called them.
function inverted(root) {
  const top = { name: root.name, value: root.value, children: [], parent: null, below: new Map() };
  const waiting = [root];
  while (waiting.length) {
    const node = waiting.pop();
    waiting.push(...node.children);
    const own = node.value - node.children.reduce((sum, child) => sum + child.value, 0);
    if (own <= 0 || node === root) continue;
    let at = top;
    for (let caller = node; caller !== root; caller = caller.parent) {
      if (!at.below.has(caller.name)) {
        const made = { name: caller.name, value: 0, children: [], parent: at, below: new Map() };
        at.below.set(caller.name, made);
        at.children.push(made);
      }
      at = at.below.get(caller.name);
      at.value += own;
    }
  }
  return top;
}

class FlameGraph {
  constructor(flame, place, found) {
    this.whole = treeOf(flame.frames);
    this.place = place;
    this.found = found;
    this.words = "";
    this.root = this.top = this.whole;
    this.draw();
    new ResizeObserver(() => this.draw()).observe(place);
  }

  invert(isInverted) {
    this.root = this.top = isInverted ? inverted(this.whole) : this.whole;
    this.draw();
  }

  search(words) {
    this.words = words.toLowerCase();
    this.draw();
  }

  // Callers of the frame that is zoomed into stand below it, as wide as the picture.
  draw() {
    const width = this.place.clientWidth;
    if (!width || width === this.width && this.drawn === this.top && this.drawnWords === this.words) return;
    [this.width, this.drawn, this.drawnWords] = [width, this.top, this.words];
    const frames = [];
    for (let caller = this.top.parent; caller; caller = caller.parent) frames.unshift([caller, 0, width, 0]);
    frames.forEach((frame, i) => { frame[3] = i; });
    this.lay(this.top, 0, width, frames.length, frames);
    const height = ROW * (1 + Math.max(...frames.map((frame) => frame[3])));
    const svg = draw("svg", { width, height, role: "group", "aria-label": "Flame graph" }, ...frames.map((frame) => this.frame(frame, height)));
    this.place.replaceChildren(svg);
    this.found.textContent = this.words ? `${percent(this.matched() / this.root.value)} of samples` : "";
  }

  lay(node, x, width, depth, frames) {
    const waiting = [[node, x, width, depth]];
    while (waiting.length) {
      const [each, left, wide, level] = waiting.pop();
      if (wide < 2) continue;
      frames.push([each, left, wide, level]);
      let at = left;
      for (const child of each.children) {
        const part = wide * child.value / each.value;
        waiting.push([child, at, part, level + 1]);
        at += part;
      }
    }
  }

  frame([node, x, width, level], height) {
    const words = `${node.name}: ${grouped(node.value, 0)} (${percent(node.value / this.root.value)})`;
    const isHit = this.words && node.name.toLowerCase().includes(this.words);
    const label = width > 30 ? shortened(node.name, Math.floor((width - 8) / 7)) : "";
    const made = draw("g", { class: `frame f${hue(node.name)}${isHit ? " hit" : ""}`, transform: `translate(${x.toFixed(1)} ${height - ROW * (level + 1)})`, tabindex: 0, role: "button", "aria-label": words },
      draw("title", {}, words), draw("rect", { width: Math.max(1, width - 1).toFixed(1), height: ROW - 1 }), draw("text", { x: 4, y: 14, "aria-hidden": "true" }, label));
    const zoom = () => { this.top = node; this.draw(); this.place.querySelector(`[aria-label="${CSS.escape(words)}"]`)?.focus(); };
    made.addEventListener("click", zoom);
    made.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); zoom(); }
    });
    return made;
  }

  // Samples of the outermost frames that match.
  matched() {
    let sum = 0;
    const waiting = [this.root];
    while (waiting.length) {
      const node = waiting.pop();
      if (node.name.toLowerCase().includes(this.words)) sum += node.value;
      else waiting.push(...node.children);
    }
    return sum;
  }
}
function hue(name) {
  let sum = 0;
  for (const letter of name) sum = (31 * sum + letter.codePointAt(0)) % 6;
  return sum;
}

function buildFlame(place) {
  const choice = make("select", { id: "flame-choice" }, ...data.flames.map((flame, i) => make("option", { value: i }, flame.title)));
  const search = make("input", { type: "search", id: "flame-search" });
  const invert = make("input", { type: "checkbox", id: "flame-invert" });
  const found = make("p", { id: "flame-found", "aria-live": "polite" });
  const graph = make("div", { id: "flame-graph" });
  const labelled = (id, words, input) => make("label", { for: id }, words, " ", input);
  place.append(
    make("p", {}, "Wider is more; callers stand below what they called, inverted above those that they call. Enter or a click zooms in, on the lowest frame out. Of “Calls” each function has the instructions that ran in it, shared among its callers by how often they called it."),
    make("div", { class: "table-bar" }, labelled("flame-choice", "Show", choice), labelled("flame-search", "Find", search), labelled("flame-invert", "inverted", invert)),
    found, graph,
  );
  let chart = null;
  const show = () => {
    chart = new FlameGraph(data.flames[Number(choice.value)], graph, found);
    chart.invert(invert.checked);
    chart.search(search.value);
  };
  choice.addEventListener("change", show);
  invert.addEventListener("change", () => chart.invert(invert.checked));
  search.addEventListener("input", () => chart.search(search.value));
  show();
}
