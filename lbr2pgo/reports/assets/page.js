"use strict";
{
  const data = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;

  // Colours: those of the system unless chosen; a browser may refuse to remember the choice.
  const themes = { "": "as the system", light: "light", dark: "dark" };
  const button = document.getElementById("theme");
  const remembered = (write) => { try { return write(localStorage); } catch { return null; } };
  const redrawn = [];
  function setTheme(theme) {
    root.dataset.theme = theme;
    button.textContent = `Colours: ${themes[theme]}`;
    redrawn.forEach((redraw) => redraw());
  }
  button.addEventListener("click", () => {
    const names = Object.keys(themes);
    const next = names[(names.indexOf(root.dataset.theme ?? "") + 1) % names.length];
    remembered((store) => store.setItem("lbr2pgo-theme", next));
    setTheme(next);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => setTheme(root.dataset.theme));
  const chosen = remembered((store) => store.getItem("lbr2pgo-theme"));
  setTheme(chosen in themes ? chosen : "");

  // Tables. Addresses are of different length; as text of one length they sort as numbers do.
  DataTable.ext.type.order["address-pre"] = (text) => text.replace(/<[^>]*>/g, "").slice(2).padStart(16, "0");
  const tables = new Map();
  for (const table of document.querySelectorAll("table.sortable")) {
    const made = new DataTable(table, {
      order: [],
      pageLength: 15,
      lengthMenu: [15, 50, 100, { label: "all", value: -1 }],
      autoWidth: false,
      columnDefs: [{ targets: "address", type: "address" }, { targets: "number", type: "num" }],
      language: { search: "Search", lengthMenu: "_MENU_ rows", emptyTable: "", zeroRecords: "Nothing found." },
    });
    tables.set(table.closest("section").id, made);
  }

  // Links lead into closed functions, and to the rows of a table that speak of something.
  function reveal(id) {
    const target = document.getElementById(id);
    const closed = target?.closest("details:not([open])");
    if (closed) { closed.open = true; target.scrollIntoView(); }
  }
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href^='#']");
    if (!link) return;
    const id = link.getAttribute("href").slice(1);
    if (link.dataset.search) tables.get(id)?.search(link.dataset.search).draw();
    reveal(id);
  });
  addEventListener("hashchange", () => reveal(location.hash.slice(1)));
  reveal(location.hash.slice(1));

  // Latency charts.
  const whole = [...Array(12).keys()].flatMap((power) => [1, 2, 5].map((digit) => digit * 10 ** power));
  document.querySelectorAll(".plot").forEach((place, i) => {
    const { cycles, rate } = data.charts[i];
    const colour = () => getComputedStyle(place).color;
    const axis = { stroke: colour, grid: { stroke: () => getComputedStyle(place.parentElement).borderTopColor } };
    const size = () => ({ width: place.clientWidth, height: place.clientHeight - 30 });
    const plot = new uPlot({
      ...size(),
      scales: { x: { time: false, range: (_, low, high) => [0, 1.05 * high + 1] }, y: { range: (_, low, high) => [0, high * 1.05] } },
      axes: [{ ...axis, label: "cycles", labelSize: 16, size: 30, incrs: whole }, { ...axis, size: 55, values: (_, shares) => shares.map(percent) }],
      series: [{ label: "cycles" }, {
        label: "rate",
        stroke: "#e8622c",
        fill: "#e8622c99",
        value: (_, share) => (share == null ? "" : percent(share)),
        paths: uPlot.paths.bars({ size: [0.8, 24, 2] }),
        points: { show: false },
      }],
    }, [cycles, rate], place);
    redrawn.push(() => plot.redraw());
    new ResizeObserver(() => plot.setSize(size())).observe(place);
  });
  function percent(share) { return `${+(100 * share).toPrecision(3)} %`; }

  // Control flow: laid out when it is first seen, since that takes a moment.
  function element(name, attributes, ...children) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }
  function layOut({ nodes, edges }) {
    const graph = new dagre.graphlib.Graph({ multigraph: true });
    graph.setGraph({ ranksep: 30, nodesep: 24, edgesep: 12, marginx: 8, marginy: 8 });
    for (const node of nodes) {
      const width = 16 + 7.3 * Math.max(...node.label.map((line) => line.length));
      graph.setNode(node.id, { ...node, width, height: 42 });
    }
    edges.forEach((edge, i) => graph.setEdge(edge.source, edge.target, { ...edge, stroke: edge.width, width: 7 * edge.label.length, height: 14, labelpos: "c" }, String(i)));
    dagre.layout(graph);
    return graph;
  }
  function drawNode(node) {
    const lines = node.label.map((line, i) => element("text", { x: 8, y: 17 + 16 * i }, line));
    const box = element("rect", { width: node.width, height: node.height, rx: 4 });
    const at = `translate(${node.x - node.width / 2} ${node.y - node.height / 2})`;
    return element("a", { href: node.href, transform: at, class: `node h${node.heat}` }, box, ...lines);
  }
  function loopAt({ x, y, width }) {
    const right = x + width / 2;
    return `M${right} ${y - 10}C${right + 22} ${y - 24} ${right + 22} ${y + 24} ${right} ${y + 10}`;
  }
  function drawEdge(graph, name, marker) {
    const edge = graph.edge(name);
    const way = edge.points.map(({ x, y }, i) => `${i ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
    const path = name.v === name.w ? loopAt(graph.node(name.v)) : way;
    const line = element("path", { d: path, "stroke-width": edge.stroke, "marker-end": `url(#${marker})` });
    const label = element("text", { x: edge.x ?? 0, y: (edge.y ?? 0) + 4 }, edge.label);
    return element("g", { class: `edge ${edge.kind}` }, element("title", {}, edge.title), line, label);
  }
  function drawGraph(place, content, number) {
    const graph = layOut(content);
    const { width, height } = graph.graph();
    const tip = element("path", { d: "M0 0L8 4L0 8z" });
    const marker = element("marker", { id: `tip-${number}`, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 9, markerHeight: 9, markerUnits: "userSpaceOnUse", orient: "auto" }, tip);
    place.append(element("svg", { width, height }, element("defs", {}, marker),
      ...graph.edges().map((name) => drawEdge(graph, name, `tip-${number}`)),
      ...graph.nodes().map((name) => drawNode(graph.node(name)))));
    const hottest = graph.nodes().map((name) => graph.node(name)).reduce((a, b) => (b.heat > a.heat ? b : a));
    place.scrollTo(hottest.x - place.clientWidth / 2, hottest.y - place.clientHeight / 2);
  }
  const unseen = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      unseen.unobserve(target);
      const number = places.indexOf(target);
      if (data.graphs[number].nodes.length) drawGraph(target, data.graphs[number], number);
    }
  }, { rootMargin: "400px" });
  const places = [...document.querySelectorAll(".drawing")];
  places.forEach((place) => unseen.observe(place));

  // Flame graph: frames come flat, callers before callees.
  function tree({ names, frames }) {
    const path = [];
    for (const [depth, name, value] of frames) {
      const node = { name: names[name], value, children: [] };
      path[depth - 1]?.children.push(node);
      path[depth] = node;
    }
    return path[0];
  }
  if (data.flame) {
    const place = document.getElementById("flame-graph");
    const makeFocusable = () => place.querySelectorAll("g.frame").forEach((frame) => {
      frame.setAttribute("tabindex", 0);
      frame.setAttribute("role", "button");
      frame.setAttribute("aria-label", frame.querySelector("title").textContent);
    });
    const chart = flamegraph.default().width(place.clientWidth).minFrameSize(2).transitionDuration(0)
      .onClick(() => setTimeout(makeFocusable))
      .setSearchMatch((frame, term) => Boolean(term) && frame.data.name.toLowerCase().includes(term.toLowerCase()))
      .setSearchHandler((_, sum, total) => {
        document.getElementById("flame-found").textContent = sum ? `${percent(sum / total)} of samples` : "";
      });
    d3.select(place).datum(tree(data.flame)).call(chart);
    makeFocusable();
    place.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      event.target.dispatchEvent(new MouseEvent("click", { bubbles: true }));
    });
    const search = document.getElementById("flame-search");
    search.form.addEventListener("submit", (event) => event.preventDefault());
    search.addEventListener("input", () => (search.value ? chart.search(search.value) : chart.clear()));
  }
}
