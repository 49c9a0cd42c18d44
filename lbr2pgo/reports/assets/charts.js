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
  let plot = null;
  const make_ = () => {
    plot?.destroy();
    plot = new uPlot(optionsOf(place, chart, logarithmic.checked), [chart.cycles, chart.rate, ...(chart.before ? [chart.before] : [])], place);
  };
  make_();
  logarithmic.addEventListener("change", make_);
  redrawn.add(() => plot.redraw());
  new ResizeObserver(() => plot.setSize({ width: place.clientWidth, height: place.clientHeight })).observe(place);
}

function optionsOf(place, chart, isLog) {
  const style = getComputedStyle(place);
  const axis = { stroke: () => style.color, grid: { stroke: () => getComputedStyle(place.parentElement).borderTopColor } };
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
    hooks: { draw: [(plot) => markModes(plot, chart.modes, style.color)] },
  };
}

function markModes(plot, modes, colour) {
  const { ctx, bbox } = plot;
  const line = 14 * devicePixelRatio;
  ctx.save();
  ctx.strokeStyle = ctx.fillStyle = colour;
  ctx.font = `${12 * devicePixelRatio}px system-ui, sans-serif`;
  ctx.setLineDash([4, 4]);
  modes.forEach((cycles, i) => {
    const x = Math.round(plot.valToPos(cycles, "x", true));
    if (x < bbox.left || x > bbox.left + bbox.width) return;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    const isRight = x > bbox.left + bbox.width * 0.7;
    ctx.textAlign = isRight ? "right" : "left";
    ctx.fillText(grouped(cycles), x + (isRight ? -4 : 4) * devicePixelRatio, bbox.top + line * (i + 1));
  });
  ctx.restore();
}
