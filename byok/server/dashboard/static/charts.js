// Charts over time. A chart is a section with a heading, a sentence with the main figure, the
// drawing, a legend, and the same numbers as a table. Series differ by pattern or dash, not only by
// colour. The legend shows the values at the pointer, or where the arrow keys have moved the
// cursor: for screen readers the drawing is a slider, and these values are its value.

import { h, replace, table } from "./dom.js";
import { joinList, t } from "./texts.js";

// uPlot is a classic script, no module: index.html loads it after the page's own script.
if (!globalThis.uPlot && document.readyState !== "complete") {
  await new Promise((resolve) => addEventListener("load", resolve, { once: true }));
}
const { uPlot } = globalThis;
const STYLE_PATH = "/ui/vendor/uPlot.min.css";

// Sizes are in CSS pixels.
const CHART_HEIGHT = 190;
const AXIS_NAMES_HEIGHT = 30; // within the height of the chart
const FONT = "12px sans-serif";
const LETTER_WIDTH = 7; // about, in that font
const TILE_SIZE = 8;
const DASHES = [[], [7, 4], [2, 3]]; // of the lines of each series

// The lines that are drawn over the tile of each series in the colour of the background, as
// [fromX, fromY, toX, toY].
const PATTERNS = [
  [],
  [[0, 8, 8, 0], [-2, 2, 2, -2], [6, 10, 10, 6]], // rising lines
  [[0, 2, 8, 2], [0, 6, 8, 6]], // lying lines
  [[0, 0, 8, 8], [-2, 6, 2, 10], [6, -2, 10, 2]], // falling lines
  [[2, 0, 2, 8], [6, 0, 6, 8]], // standing lines
  [[0, 4, 8, 4], [4, 0, 4, 8]], // a grid
  [[3, 4, 5, 4]], // dots
];

// Return {element, update(content)}. The chart is redrawn when its size or the theme changes, until
// `signal` is aborted. `kind` is "bars", which are stacked, or "lines". The content has
// - sentence: the main figure in words;
// - times: the name of each bucket;
// - ticks: a short name of each bucket for the axis, "" for none;
// - series: {label, values, total}, in which null is unknown;
// - tableSeries: further series that only the table shows, perhaps with a `format` of their own;
// - format(value) and formatTick(value): a value in the legend and the table, and at the axis;
// - max: the end of the value axis, if it is fixed;
// - minStep: the smallest difference between names of the axis, 1 if it is not given.
export function createChart(title, kind, signal) {
  loadStyle();
  const parts = {
    sentence: h("p", {}),
    plot: h("div", { class: "plot", role: "slider", tabindex: "0", "aria-label": title,
      "aria-valuemin": "0", on: { keydown: (event) => moveCursor(state, event),
        blur: () => state.plot?.setCursor({ left: -1, top: 0 }) } }),
    legend: h("ul", { class: "legend", "aria-hidden": "true" }),
    table: h("div", {}),
  };
  const state = { kind, title, parts, content: null, plot: null, width: 0 };
  const details = h("details", {}, h("summary", {}, t("chart.table")), parts.table);
  const element = h("section", { class: "card chart" }, h("h2", {}, title), parts.sentence,
    parts.plot, parts.legend, details);
  redrawOnChanges(state, signal);
  return { element, update: (content) => update(state, content) };
}

function update(state, content) {
  state.content = content;
  replace(state.parts.sentence, content.sentence);
  fillTable(state);
  draw(state);
}

// Move the cursor by a key to the previous, next, first or last bucket.
function moveCursor({ content, plot }, event) {
  if (!plot) return;
  const last = content.times.length - 1;
  const { idx } = plot.cursor;
  const target = { ArrowLeft: (idx ?? last + 1) - 1, ArrowRight: (idx ?? -1) + 1, Home: 0,
    End: last }[event.key];
  if (target === undefined) return;
  event.preventDefault();
  plot.setCursor({ left: plot.valToPos(Math.max(0, Math.min(last, target)), "x"), top: 0 });
}

function redrawOnChanges(state, signal) {
  const sizes = new ResizeObserver(([{ contentRect }]) => {
    if (Math.floor(contentRect.width) === state.width) return;
    state.width = Math.floor(contentRect.width);
    draw(state);
  });
  sizes.observe(state.parts.plot);
  const redraw = () => draw(state);
  addEventListener("byok-theme", redraw, { signal });
  signal.addEventListener("abort", () => {
    sizes.disconnect();
    state.plot?.destroy();
    state.plot = state.content = null;
    replace(state.parts.legend); // browsers retain removed plots for a while, and names in them
  });
}

function draw(state) {
  const { content, parts, width } = state;
  if (!content) return;
  state.plot?.destroy();
  state.plot = null;
  const palette = readPalette();
  const showValues = showLegend(state, palette);
  if (!width || !content.times.length) return;
  const options = createOptions(state, palette);
  options.hooks = { setCursor: [(plot) => showValues(plot.cursor.idx ?? null)] };
  state.plot = new uPlot(options, stackData(state), parts.plot);
}

// Return the values as uPlot takes them: [indexes, series, ...]. Stacked bars are sums that are drawn
// over each other, the highest first.
function stackData({ kind, content }) {
  const indexes = content.times.map((_, index) => index);
  const values = content.series.map((series) => series.values);
  if (kind === "lines") return [indexes, ...values];
  const sums = [];
  for (const series of values) {
    const below = sums[0] ?? indexes.map(() => 0);
    sums.unshift(series.map((value, index) => below[index] + (value ?? 0)));
  }
  return [indexes, ...sums];
}

function createOptions(state, palette) {
  const { kind, content, width } = state;
  const last = content.times.length - 1;
  const minStep = content.minStep ?? 1;
  const axis = { stroke: palette.quiet, font: FONT, ticks: { show: false } };
  return {
    width,
    height: CHART_HEIGHT,
    padding: [8, 4 + (LETTER_WIDTH * longestWidth(content.ticks)) / 2, 0, 0],
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { show: kind === "lines" } },
    scales: {
      x: { time: false, range: () => [-0.5, last + 0.5] },
      y: { range: (_, low, high) => [0, content.max ?? (Math.max(high * 1.05, minStep))] },
    },
    axes: [
      { ...axis, grid: { show: false }, size: AXIS_NAMES_HEIGHT, gap: 10,
        splits: () => chooseTicks(content.ticks, width),
        values: (_, indexes) => indexes.map((index) => content.ticks[index] ?? "") },
      { ...axis, grid: { stroke: palette.line, width: 1 }, incrs: axisSteps(minStep),
        size: (_, texts) => 16 + LETTER_WIDTH * longestWidth(texts ?? []),
        values: (_, values) => values.map((value) => content.formatTick(value)) },
    ],
    series: [{}, ...createSeries(kind, content.series, palette)],
  };
}

// Return the steps between values that an axis may have: round numbers of at least `minStep`, so
// that no two values get the same name.
const axisSteps = (minStep) => Array.from({ length: 15 }, (_, exponent) => 10 ** exponent)
  .flatMap((size) => [1, 2, 5].map((step) => step * size * minStep));

function createSeries(kind, series, palette) {
  if (kind === "lines") {
    return series.map((_, index) => ({ stroke: palette.series[index], width: 2,
      dash: DASHES[index], points: { show: true, size: 5, fill: palette.surface } }));
  }
  const paths = uPlot.paths.bars({ size: [0.8, 48] });
  return series.map((_, index) => ({ paths, width: 0, fill: createPattern(palette, index),
    points: { show: false } })).reverse();
}

// Return the width of the widest text in letters; a Chinese character is two letters wide.
const longestWidth = (texts) => Math.max(0, ...texts.map((text) =>
  String(text).replace(/[\u2e80-\uffff]/g, "  ").length));

// Return the indexes of as many names as fit, at equal distances; the last name is among them.
function chooseTicks(ticks, width) {
  const named = [...ticks.keys()].filter((index) => ticks[index]);
  const maxTicks = Math.max(1, Math.floor((width - 60) / (LETTER_WIDTH * longestWidth(ticks) + 14)));
  const interval = Math.ceil(named.length / maxTicks);
  return named.filter((_, index) => (named.length - 1 - index) % interval === 0);
}

// Fill the legend: the name of each series, and its total or its value at the cursor. Return
// `showValues(bucket)`, which shows the values of a bucket; null shows the totals.
function showLegend({ content, kind, parts }, palette) {
  const timeItem = h("li", { class: "when" });
  const values = content.series.map(() => h("b", {}));
  replace(parts.legend, timeItem, content.series.map((series, index) =>
    h("li", {}, swatch(kind, palette, index), `${series.label} `, values[index])));
  const showValues = (bucket) => {
    replace(timeItem, content.times[bucket] ?? t("usage.figures"));
    content.series.forEach((series, index) => {
      const value = bucket === null ? series.total : series.values[bucket];
      replace(values[index], value === undefined ? "" : content.format(value));
    });
    parts.plot.ariaValueMax = content.times.length - 1;
    parts.plot.ariaValueNow = bucket ?? 0;
    parts.plot.ariaValueText = joinList([...parts.legend.children].map((item) => item.textContent));
  };
  showValues(null);
  return showValues;
}

function fillTable({ title, content, parts }) {
  const focused = parts.table.contains(document.activeElement);
  const scrolled = parts.table.firstElementChild?.scrollLeft ?? 0;
  const columns = [
    { title: t("chart.time"), cell: (index) => content.times[index] },
    ...[...content.series, ...(content.tableSeries ?? [])].map((series) => ({ title: series.label,
      numeric: true, cell: (index) => (series.format ?? content.format)(series.values[index]) })),
  ];
  replace(parts.table, table(title, columns, [...content.times.keys()]));
  parts.table.firstElementChild.scrollLeft = scrolled;
  if (focused) parts.table.firstElementChild.focus({ preventScroll: true });
}

function loadStyle() {
  if (document.querySelector(`link[href="${STYLE_PATH}"]`)) return;
  document.head.prepend(h("link", { rel: "stylesheet", href: STYLE_PATH }));
}

// Return the colours of the theme in force: {surface, line, quiet, series}.
function readPalette() {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(`--${name}`).trim();
  const series = Array.from({ length: PATTERNS.length }, (_, index) => colour(`series-${index + 1}`));
  return { surface: colour("surface"), line: colour("line"), quiet: colour("quiet"), series };
}

// Return the pattern that fills the areas of a series.
function createPattern(palette, index) {
  const scale = devicePixelRatio || 1;
  const tile = h("canvas", { width: TILE_SIZE * scale, height: TILE_SIZE * scale });
  const context = tile.getContext("2d");
  context.scale(scale, scale);
  context.fillStyle = palette.series[index];
  context.fillRect(0, 0, TILE_SIZE, TILE_SIZE);
  context.strokeStyle = palette.surface;
  context.lineWidth = index === PATTERNS.length - 1 ? 2 : 1;
  for (const [fromX, fromY, toX, toY] of PATTERNS[index]) {
    context.beginPath();
    context.moveTo(fromX, fromY);
    context.lineTo(toX, toY);
    context.stroke();
  }
  return context.createPattern(tile, "repeat");
}

// Return a small picture of a series for the legend.
function swatch(kind, palette, index) {
  const scale = devicePixelRatio || 1;
  const picture = h("canvas", { class: "swatch", width: 22 * scale, height: 12 * scale });
  const context = picture.getContext("2d");
  if (kind === "bars") {
    context.fillStyle = createPattern(palette, index);
    context.fillRect(0, 0, picture.width, picture.height);
    return picture;
  }
  context.strokeStyle = palette.series[index];
  context.lineWidth = 2 * scale;
  context.setLineDash(DASHES[index].map((length) => length * scale));
  context.beginPath();
  context.moveTo(0, picture.height / 2);
  context.lineTo(picture.width, picture.height / 2);
  context.stroke();
  return picture;
}
