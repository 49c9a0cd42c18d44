"use strict";
// Latency: how often a block, or a round of a loop, took how many cycles; drawn when it is seen.

const WHOLE = [...Array(12).keys()].flatMap((power) => [1, 2, 5].map((digit) => digit * 10 ** power));

const logarithmic = make("input", { type: "checkbox" });

// A chart with its title; drawn when it is seen.
function chartFigure(chart) {
  const address = `0x${chart.start}`;
  const plot = make("div", { class: "plot", role: "img", "aria-label": `${text(chart.title)}: ${text(chart.facts)}` });
  const words = make("figcaption", {}, make("strong", {}, link(placeOf(address), text(chart.title))), ` ${text(chart.line)}`, make("br"), text(chart.facts));
  new IntersectionObserver(([{ isIntersecting }], seen) => {
    if (!isIntersecting) return;
    seen.disconnect();
    drawChart(plot, chart);
  }).observe(plot);
  return make("figure", { class: "chart" }, words, plot);
}
const chartsAt = (address, isLoop) => data.charts.filter((chart) => `0x${chart.start}` === address && chart.is_loop === isLoop);

function buildCharts(place) {
  place.append(
    make("div", { class: "tools" }, make("h2", {}, "Latency charts"), labelled("logarithmic axis", logarithmic)),
    make("p", { class: "faint" }, "How often a block, or a round of a loop, took how many cycles. Lines mark the modes."),
    ...data.charts.map(chartFigure),
  );
}

function drawChart(place, chart) {
  const columns = [chart.cycles, chart.rate, ...(chart.before ? [chart.before] : [])];
  logarithmic.addEventListener("change", drawPlot(place, () => optionsOf(place, chart, logarithmic.checked), columns));
}

// Draws a plot of columns, and keeps it as wide as its place; what draws it anew is given back.
function drawPlot(place, options, columns) {
  let plot = null;
  const again = () => {
    plot?.destroy();
    plot = new uPlot(options(), columns, place);
  };
  again();
  redrawn.add(() => plot.redraw());
  new ResizeObserver(() => plot.setSize({ width: place.clientWidth, height: place.clientHeight })).observe(place);
  return again;
}
const axisOf = (place) => ({ stroke: () => getComputedStyle(place).color, grid: { stroke: () => getComputedStyle(place.parentElement).borderTopColor } });

// When samples were taken; lines mark where phases begin.
function buildTimeLine(place) {
  const { seconds, samples, phases } = data.time_line;
  const plot = make("div", { class: "plot", role: "img", "aria-label": `Samples over time, in ${phases.length} phases` });
  const words = make("p", { class: "faint" }, "Samples in equal spans of time; lines mark where the ", link("t-phases", "phases"), " begin.");
  place.append(make("h2", {}, "Time line"), words, make("figure", { class: "chart" }, plot));
  const options = () => ({
    width: plot.clientWidth,
    height: plot.clientHeight,
    legend: { show: false },
    scales: { x: { time: false } },
    axes: [{ ...axisOf(plot), label: "seconds", labelSize: 18, size: 32 }, { ...axisOf(plot), size: 60 }],
    series: [{}, { label: "samples", stroke: "#e8622c", fill: "#e8622c99", paths: uPlot.paths.stepped({ align: 1 }), points: { show: false } }],
    hooks: { draw: [(drawn) => markPlaces(drawn, phases.map((second, i) => [second, `phase ${i + 1}`]), getComputedStyle(plot).color)] },
  });
  drawPlot(plot, options, [seconds, samples]);
}

// How many pages of code had run by each moment of a start, by file and section.
const LINES = ["#e8622c", "#2f7fd1", "#3a9d5d", "#b0489c", "#c29a1b", "#5b6ee1", "#8a6d3b", "#7f8c8d"];
function buildStart(place) {
  const { ms, lines } = data.start;
  const plot = make("div", { class: "plot", role: "img", "aria-label": `Pages of code that ran, of ${lines.length} sections` });
  const words = make("p", { class: "faint" }, "How many ", link("t-start-pages", "pages"), " of each ", link("t-start", "section"), " had run by each moment.");
  const key = lines.flatMap(([label], i) => {
    const mark = make("span", { "aria-hidden": "true" }, "■");
    mark.style.color = LINES[i];
    return [mark, ` ${text(label)} `];
  });
  place.append(make("h2", {}, "Start"), words, make("figure", { class: "chart" }, plot, make("figcaption", {}, ...key)));
  const options = () => ({
    width: plot.clientWidth,
    height: plot.clientHeight,
    legend: { show: false },
    scales: { x: { time: false } },
    axes: [{ ...axisOf(plot), label: "milliseconds", labelSize: 18, size: 32 }, { ...axisOf(plot), size: 60 }],
    series: [{}, ...lines.map((_, i) => ({ stroke: LINES[i], width: 2, paths: uPlot.paths.stepped({ align: 1 }), points: { show: false } }))],
  });
  drawPlot(plot, options, [ms, ...lines.map(([, pages]) => pages)]);
}

function optionsOf(place, chart, isLog) {
  const style = getComputedStyle(place), axis = axisOf(place);
  const range = isLog
    ? (_, low, high) => [Math.max(1, low * 0.9), high * 1.1 + 1]
    : (_, low, high) => [0, 1.05 * high + 1];
  return {
    width: place.clientWidth,
    height: place.clientHeight,
    legend: { show: false },
    scales: { x: { time: false, distr: isLog ? 3 : 1, range }, y: { range: (_, low, high) => [0, high * 1.25] } },
    axes: [
      { ...axis, label: "cycles", labelSize: 18, size: 32, ...(isLog ? {} : { incrs: WHOLE }) },
      { ...axis, size: 60, values: (_, shares) => shares.map(percent) },
    ],
    series: [{ label: "cycles" }, {
      label: "rate", stroke: "#e8622c", fill: "#e8622c99",
      paths: uPlot.paths.bars({ size: [0.8, 24, 2] }), points: { show: false },
    }, ...(chart.before ? [{
      label: "before", stroke: "#2f7fd1", fill: "#2f7fd155",
      paths: uPlot.paths.bars({ size: [0.8, 24, 2] }), points: { show: false },
    }] : [])],
    hooks: { draw: [(plot) => markPlaces(plot, chart.modes.map((cycles) => [cycles, grouped(cycles)]), style.color)] },
  };
}

function markPlaces(plot, places, colour) {
  const { ctx, bbox } = plot;
  const line = 14 * devicePixelRatio;
  ctx.save();
  ctx.strokeStyle = ctx.fillStyle = colour;
  ctx.font = `${12 * devicePixelRatio}px system-ui, sans-serif`;
  ctx.setLineDash([4, 4]);
  places.forEach(([at, words], i) => {
    const x = Math.round(plot.valToPos(at, "x", true));
    if (x < bbox.left || x > bbox.left + bbox.width) return;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    const isRight = x > bbox.left + bbox.width * 0.7;
    ctx.textAlign = isRight ? "right" : "left";
    ctx.fillText(words, x + (isRight ? -4 : 4) * devicePixelRatio, bbox.top + line * (i + 1));
  });
  ctx.restore();
}
