"use strict";
// Control flow, laid out by dagre.

function layOut({ nodes, edges }) {
  const graph = new dagre.graphlib.Graph({ multigraph: true });
  graph.setGraph({ ranksep: 30, nodesep: 24, edgesep: 12, marginx: 8, marginy: 8 });
  for (const node of nodes) {
    const label = node.label.map((line) => shortened(line, 44));
    const width = 16 + 7.3 * Math.max(...label.map((line) => line.length));
    graph.setNode(node.id, { ...node, label, full: node.label.join("\n"), width, height: 42 });
  }
  edges.forEach((edge, i) => graph.setEdge(edge.source, edge.target, { ...edge, stroke: edge.width, width: 7 * edge.label.length, height: 14, labelpos: "c" }, String(i)));
  dagre.layout(graph);
  return graph;
}
function drawNode(node, isInChain) {
  const lines = node.label.map((line, i) => draw("text", { x: 8, y: 17 + 16 * i }, line));
  const box = draw("rect", { width: node.width, height: node.height, rx: 4 });
  const at = `translate(${node.x - node.width / 2} ${node.y - node.height / 2})`;
  const kind = `node h${node.heat}${isInChain ? " in-chain" : ""}`;
  return draw("a", { href: node.href, transform: at, class: kind }, draw("title", {}, node.full), box, ...lines);
}
function loopAt({ x, y, width }) {
  const right = x + width / 2;
  return `M${right} ${y - 10}C${right + 22} ${y - 24} ${right + 22} ${y + 24} ${right} ${y + 10}`;
}
function drawEdge(graph, name, marker) {
  const edge = graph.edge(name);
  const way = edge.points.map(({ x, y }, i) => `${i ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
  const path = name.v === name.w ? loopAt(graph.node(name.v)) : way;
  const line = draw("path", { d: path, "stroke-width": edge.stroke, "marker-end": `url(#${marker})` });
  const label = draw("text", { x: edge.x ?? 0, y: (edge.y ?? 0) + 4 }, edge.label);
  return draw("g", { class: `edge ${edge.kind}` }, draw("title", {}, edge.title), line, label);
}
let pictures = 0;
function drawGraph(place, content, chain) {
  const graph = layOut(content);
  const { width, height } = graph.graph();
  const number = `tip-${(pictures += 1)}`;
  const marker = draw("marker", { id: number, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 9, markerHeight: 9, markerUnits: "userSpaceOnUse", orient: "auto" }, draw("path", { d: "M0 0L8 4L0 8z" }));
  const nodes = graph.nodes().map((name) => graph.node(name));
  const starts = nodes.map((node) => BigInt(`0x${node.href.slice(3)}`)).sort((a, b) => (a < b ? -1 : 1));
  // Paths across calls go on in the middle of a block.
  const blockOf = (address) => starts.filter((start) => start <= BigInt(address)).at(-1);
  const inChain = new Set(chain.map((address) => `#i-${(blockOf(address) ?? 0n).toString(16)}`));
  place.append(draw("svg", { width, height }, draw("defs", {}, marker),
    ...graph.edges().map((name) => drawEdge(graph, name, number)),
    ...nodes.map((node) => drawNode(node, inChain.has(node.href)))));
  const first = nodes.find((node) => inChain.has(node.href)) ?? nodes.reduce((a, b) => (b.heat > a.heat ? b : a));
  place.scrollTo(first.x - place.clientWidth / 2, first.y - place.clientHeight / 2);
}
