// Charts over time. A chart is a section with a heading, a sentence that says the main
// figure, the drawing, a legend, and the same numbers as a table. Series differ by pattern
// or dash too. The legend shows the values where the pointer is, or where arrow keys lead: to who
// hears the page the drawing is a slider, whose value they are.

import { h, replace, table } from "./dom.js";
import { listed, t } from "./texts.js";

// A program of the browser's older kind, which index.html loads behind the page's own.
if (!globalThis.uPlot && document.readyState !== "complete") {
  await new Promise((go) => addEventListener("load", go, { once: true }));
}
const { uPlot } = globalThis;
const HEIGHT = 190; // pixels, of it the names below
const NAMES = 30;
const FONT = "12px sans-serif";
const LETTER = 7; // pixels, about
const TILE = 8; // pixels
const DASHES = [[], [7, 4], [2, 3]];

// What is drawn over a tile, in the colour of the background.
const PATTERNS = [
  [],
  [[0, 8, 8, 0], [-2, 2, 2, -2], [6, 10, 10, 6]], // rising lines
  [[0, 2, 8, 2], [0, 6, 8, 6]], // lying lines
  [[0, 0, 8, 8], [-2, 6, 2, 10], [6, -2, 10, 2]], // falling lines
  [[2, 0, 2, 8], [6, 0, 6, 8]], // standing lines
  [[0, 4, 8, 4], [4, 0, 4, 8]], // a grid
  [[3, 4, 5, 4]], // dots
];
const STYLE = "/ui/vendor/uPlot.min.css";

// Return {element, update(content)}; it is drawn anew when its size or the colours change,
// until `signal` is aborted. `kind` is "bars", which are stacked, or "lines". A content is
// {sentence, times, ticks, series, notes, write, axis, most, least}: `times` name each bucket,
// `ticks` too, shortly, or "" for no name at the axis. `series` are {label, values, total}, where null
// is unknown; `notes` are such that only the table has. `write(value)` is for people, `axis(value)`
// for the axis, `most` is its end, and `least` the difference that its names can tell.
export function createChart(title, kind, signal) {
  loadStyle();
  const parts = {
    sentence: h("p", {}),
    plot: h("div", { class: "plot", role: "slider", tabindex: "0", "aria-label": title,
      "aria-valuemin": "0", on: { keydown: (event) => step(state, event),
        blur: () => state.plot?.setCursor({ left: -1, top: 0 }) } }),
    legend: h("ul", { class: "legend", "aria-hidden": "true" }),
    table: h("div", {}),
  };
  const state = { kind, title, parts, content: null, plot: null, width: 0 };
  const details = h("details", {}, h("summary", {}, t("chart.table")), parts.table);
  const element = h("section", { class: "card chart" }, h("h2", {}, title), parts.sentence,
    parts.plot, parts.legend, details);
  watch(state, signal);
  return { element, update: (content) => update(state, content) };
}

function update(state, content) {
  state.content = content;
  replace(state.parts.sentence, content.sentence);
  fillTable(state);
  draw(state);
}

// Lead to the bucket before or behind that of the cursor, or to the first or last one.
function step({ content, plot }, event) {
  if (!plot) return;
  const last = content.times.length - 1;
  const { idx } = plot.cursor;
  const to = { ArrowLeft: (idx ?? last + 1) - 1, ArrowRight: (idx ?? -1) + 1, Home: 0, End: last }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  plot.setCursor({ left: plot.valToPos(Math.max(0, Math.min(last, to)), "x"), top: 0 });
}

function watch(state, signal) {
  const sizes = new ResizeObserver(([{ contentRect }]) => {
    if (Math.floor(contentRect.width) === state.width) return;
    state.width = Math.floor(contentRect.width);
    draw(state);
  });
  sizes.observe(state.parts.plot);
  const again = () => draw(state);
  addEventListener("byok-theme", again, { signal });
  signal.addEventListener("abort", () => {
    sizes.disconnect();
    state.plot?.destroy();
    state.plot = state.content = null;
    replace(state.parts.legend); // the browser keeps plots for a while, and what they name
  });
}

function draw(state) {
  const { content, parts, width } = state;
  if (!content) return;
  state.plot?.destroy();
  state.plot = null;
  const palette = paletteOf();
  const showValues = showLegend(state, palette);
  if (!width || !content.times.length) return;
  const options = optionsOf(state, palette);
  options.hooks = { setCursor: [(plot) => showValues(plot.cursor.idx ?? null)] };
  state.plot = new uPlot(options, dataOf(state), parts.plot);
}

// Bars are drawn over each other, the highest sum first, so they look stacked.
function dataOf({ kind, content }) {
  const places = content.times.map((_, place) => place);
  const values = content.series.map((series) => series.values);
  if (kind === "lines") return [places, ...values];
  const sums = [];
  for (const row of values) {
    const below = sums[0] ?? places.map(() => 0);
    sums.unshift(row.map((value, place) => below[place] + (value ?? 0)));
  }
  return [places, ...sums];
}

function optionsOf(state, palette) {
  const { kind, content, width } = state;
  const last = content.times.length - 1;
  const least = content.least ?? 1;
  const axis = { stroke: palette.quiet, font: FONT, ticks: { show: false } };
  return {
    width,
    height: HEIGHT,
    padding: [8, 4 + (LETTER * longest(content.ticks)) / 2, 0, 0],
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { show: kind === "lines" } },
    scales: {
      x: { time: false, range: () => [-0.5, last + 0.5] },
      y: { range: (_, low, high) => [0, content.most ?? (Math.max(high * 1.05, least))] },
    },
    axes: [
      { ...axis, grid: { show: false }, size: NAMES, gap: 10,
        splits: () => chooseTicks(content.ticks, width),
        values: (_, places) => places.map((place) => content.ticks[place] ?? "") },
      { ...axis, grid: { stroke: palette.line, width: 1 }, incrs: stepsFrom(least),
        size: (_, texts) => 16 + LETTER * longest(texts ?? []),
        values: (_, values) => values.map((value) => content.axis(value)) },
    ],
    series: [{}, ...seriesOf(kind, content.series, palette)],
  };
}

// Return the steps that an axis may have: round numbers, of which no two are named alike.
const stepsFrom = (least) => Array.from({ length: 15 }, (_, place) => 10 ** place)
  .flatMap((size) => [1, 2, 5].map((step) => step * size * least));

function seriesOf(kind, series, palette) {
  if (kind === "lines") {
    return series.map((_, index) => ({ stroke: palette.series[index], width: 2,
      dash: DASHES[index], points: { show: true, size: 5, fill: palette.surface } }));
  }
  const paths = uPlot.paths.bars({ size: [0.8, 48] });
  return series.map((_, index) => ({ paths, width: 0, fill: fillOf(palette, index),
    points: { show: false } })).reverse();
}

// Return how many letters wide the longest text is; Chinese ones are two wide.
const longest = (texts) => Math.max(0, ...texts.map((text) =>
  String(text).replace(/[\u2e80-\uffff]/g, "  ").length));

// Return the places of as many names as fit, at equal distances; the last ones count.
function chooseTicks(ticks, width) {
  const named = [...ticks.keys()].filter((place) => ticks[place]);
  const fit = Math.max(1, Math.floor((width - 60) / (LETTER * longest(ticks) + 14)));
  const every = Math.ceil(named.length / fit);
  return named.filter((_, index) => (named.length - 1 - index) % every === 0);
}

// Name the series. Beside each stands its total, or its value where the pointer is.
function showLegend({ content, kind, parts }, palette) {
  const when = h("li", { class: "when" });
  const values = content.series.map(() => h("b", {}));
  replace(parts.legend, when, content.series.map((series, index) =>
    h("li", {}, swatch(kind, palette, index), `${series.label} `, values[index])));
  const show = (place) => {
    replace(when, content.times[place] ?? t("usage.figures"));
    content.series.forEach((series, index) => {
      const value = place === null ? series.total : series.values[place];
      replace(values[index], value === undefined ? "" : content.write(value));
    });
    parts.plot.ariaValueMax = content.times.length - 1;
    parts.plot.ariaValueNow = place ?? 0;
    parts.plot.ariaValueText = listed([...parts.legend.children].map((one) => one.textContent));
  };
  show(null);
  return show;
}

function fillTable({ title, content, parts }) {
  const focused = parts.table.contains(document.activeElement);
  const before = parts.table.firstElementChild?.scrollLeft ?? 0;
  const columns = [
    { title: t("chart.time"), cell: (place) => content.times[place] },
    ...[...content.series, ...(content.notes ?? [])].map((series) => ({ title: series.label,
      numeric: true, cell: (place) => (series.write ?? content.write)(series.values[place]) })),
  ];
  replace(parts.table, table(title, columns, [...content.times.keys()]));
  parts.table.firstElementChild.scrollLeft = before;
  if (focused) parts.table.firstElementChild.focus({ preventScroll: true });
}

function loadStyle() {
  if (document.querySelector(`link[href="${STYLE}"]`)) return;
  document.head.prepend(h("link", { rel: "stylesheet", href: STYLE }));
}

// Return the colours of the theme in force: {surface, line, quiet, series}.
function paletteOf() {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(`--${name}`).trim();
  const series = Array.from({ length: PATTERNS.length }, (_, index) => colour(`series-${index + 1}`));
  return { surface: colour("surface"), line: colour("line"), quiet: colour("quiet"), series };
}

// Return what the areas of a series are filled with.
function fillOf(palette, index) {
  const scale = devicePixelRatio || 1;
  const tile = h("canvas", { width: TILE * scale, height: TILE * scale });
  const ink = tile.getContext("2d");
  ink.scale(scale, scale);
  ink.fillStyle = palette.series[index];
  ink.fillRect(0, 0, TILE, TILE);
  ink.strokeStyle = palette.surface;
  ink.lineWidth = index === PATTERNS.length - 1 ? 2 : 1;
  for (const [fromX, fromY, toX, toY] of PATTERNS[index]) {
    ink.beginPath();
    ink.moveTo(fromX, fromY);
    ink.lineTo(toX, toY);
    ink.stroke();
  }
  return ink.createPattern(tile, "repeat");
}

// Return a small picture of how a series looks.
function swatch(kind, palette, index) {
  const scale = devicePixelRatio || 1;
  const picture = h("canvas", { class: "swatch", width: 22 * scale, height: 12 * scale });
  const ink = picture.getContext("2d");
  if (kind === "bars") {
    ink.fillStyle = fillOf(palette, index);
    ink.fillRect(0, 0, picture.width, picture.height);
    return picture;
  }
  ink.strokeStyle = palette.series[index];
  ink.lineWidth = 2 * scale;
  ink.setLineDash(DASHES[index].map((length) => length * scale));
  ink.beginPath();
  ink.moveTo(0, picture.height / 2);
  ink.lineTo(picture.width, picture.height / 2);
  ink.stroke();
  return picture;
}
