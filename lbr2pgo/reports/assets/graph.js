"use strict";
// Control flow of a function, laid out by dagre.

const MOST_BLOCKS = 120; // no layout of thousands is readable

function layOut(blocks, edges) {
  const graph = new dagre.graphlib.Graph({ multigraph: true });
  graph.setGraph({ ranksep: 30, nodesep: 24, edgesep: 12, marginx: 8, marginy: 8 });
  for (const block of blocks) {
    const width = 16 + 7.3 * Math.max(...block.label.map((line) => line.length));
    graph.setNode(String(block.number), { ...block, width, height: 42 });
  }
  edges.forEach((edge, i) => graph.setEdge(String(edge.source), String(edge.target), { ...edge, width: 7 * edge.label.length, height: 14, labelpos: "c" }, String(i)));
  dagre.layout(graph);
  return graph;
}
function drawBlock(block, isInChain) {
  const lines = block.label.map((line, i) => draw("text", { x: 8, y: 17 + 16 * i }, line));
  const box = draw("rect", { width: block.width, height: block.height, rx: 4 });
  const at = `translate(${block.x - block.width / 2} ${block.y - block.height / 2})`;
  return draw("a", { href: `#${block.place}`, transform: at, class: `node ${heat(block.part)}${isInChain ? " in-chain" : ""}` }, box, ...lines);
}
function drawEdge(graph, name) {
  const edge = graph.edge(name), { x, y, width } = graph.node(name.v), right = x + width / 2;
  const loop = `M${right} ${y - 10}C${right + 22} ${y - 24} ${right + 22} ${y + 24} ${right} ${y + 10}`;
  const way = edge.points.map((point, i) => `${i ? "L" : "M"}${point.x.toFixed(1)} ${point.y.toFixed(1)}`).join("");
  const line = draw("path", { d: name.v === name.w ? loop : way, "stroke-width": 1 + 3 * edge.share, "marker-end": "url(#tip)" });
  return draw("g", { class: `edge ${edge.kind}` }, draw("title", {}, edge.title), line, draw("text", { x: edge.x ?? 0, y: (edge.y ?? 0) + 4 }, edge.label));
}

// The hottest blocks and what joins them; those of a chain are marked.
function buildGraph(code, place, chain) {
  const largest = Math.max(1, ...code.blocks.map((block) => block.count));
  const ran = code.blocks.filter((block) => block.count);
  const kept = [...ran].sort((a, b) => b.count - a.count).slice(0, MOST_BLOCKS);
  const blocks = kept.map((block) => ({ number: block.number, part: block.count / largest, place: `f-${code.start}/${code.address(block.start)}`,
    label: [`${block.number}: ${grouped(block.count)}`, `${inFile(code.address(block.start))} ${(block.code[0]?.line?.place ?? "").slice(-30)}`] }));
  const inside = new Set(kept.map((block) => block.number));
  const edges = code.edges.filter(([source, target]) => inside.has(source) && inside.has(target))
    .map(([source, target, kind, count, share]) => ({ source, target, kind, share: share ?? 0, label: share == null ? "" : percent(share), title: `${kind}: ${grouped(count)}` }));
  const words = `${grouped(kept.length)} of ${grouped(code.blocks.length)} blocks; ${grouped(code.blocks.length - ran.length)} were not seen to run${ran.length > kept.length ? `, ${grouped(ran.length - kept.length)} ran less often` : ""}.`;
  const drawing = make("div", { class: "drawing", tabindex: 0, role: "region", "aria-label": `Control flow of ${code.name}` });
  place.append(make("div", { class: "tools" }, make("h2", {}, code.name), make("span", { class: "faint" }, words), link(`f-${code.start}`, "Code")), drawing);
  if (!blocks.length) return;
  const graph = layOut(blocks, edges), { width, height } = graph.graph();
  const inChain = new Set(chain.map((address) => code.blockAt(address)?.number));
  const tip = draw("marker", { id: "tip", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 9, markerHeight: 9, markerUnits: "userSpaceOnUse", orient: "auto" }, draw("path", { d: "M0 0L8 4L0 8z" }));
  const nodes = graph.nodes().map((name) => graph.node(name));
  drawing.append(draw("svg", { width, height }, draw("defs", {}, tip), ...graph.edges().map((name) => drawEdge(graph, name)), ...nodes.map((node) => drawBlock(node, inChain.has(node.number)))));
  const first = nodes.find((node) => inChain.has(node.number)) ?? nodes.reduce((a, b) => (b.part > a.part ? b : a));
  drawing.scrollTo(first.x - drawing.clientWidth / 2, first.y - drawing.clientHeight / 2);
}
