// Tokens, cost, cache and speed over time, from the journal of requests.

import { call } from "../api.js";
import { createChart } from "../charts.js";
import { errorBox, h, replace, section, table } from "../dom.js";
import { meterSections } from "../feature-status.js";
import { dollars, duration, number, percent, short } from "../format.js";
import { follow } from "../refresh.js";
import { costOf, costText } from "../requests.js";
import { t } from "../texts.js";
import * as charts from "./usage-charts.js";

const RANGES = { day: 0, week: 7, month: 30, quarter: 90 }; // days; none for hours
const SPLITS = ["model", "client", "purpose"];
const PAUSE = 4000; // milliseconds from the end of a request to its place in the charts
const CHARTS = [
  ["tokens", "bars", charts.tokens],
  ["by", "bars", charts.tokensBy],
  ["cost", "bars", charts.cost],
  ["cache", "lines", charts.cache],
  ["requests", "bars", charts.requests],
  ["speed", "lines", charts.speed],
];

export async function open(root, [range, by], signal) {
  const chosen = { range: Object.hasOwn(RANGES, range) ? range : "week",
    by: SPLITS.includes(by) ? by : "model" };
  const parts = { trouble: h("div", {}), figures: section(t("usage.figures")), meters: h("div", {}),
    charts: h("div", { class: "charts" }), groups: section(""), days: section("") };
  // What has nothing to show is not there: an empty chart says nothing.
  for (const name of ["figures", "charts", "groups", "days"]) parts[name].hidden = true;
  const drawn = CHARTS.map(([name, kind, make]) =>
    ({ make, chart: createChart(t(`usage.${name}.title`), kind, signal) }));
  parts.charts.append(...drawn.map(({ chart }) => chart.element));
  const state = { chosen, parts, drawn, turn: 0 };
  const load = (background) => refresh(state, signal, background);
  replace(root, choices(chosen, () => load(false)), parts.trouble, parts.figures, parts.meters,
    parts.charts, parts.groups, parts.days);
  await load(false);
  follow(() => load(true), signal, PAUSE);
}

function choices(chosen, changed) {
  const choice = (name, values) => h("label", {}, `${t(`usage.${name}`)} `,
    h("select", { name, on: { change: (event) => {
      chosen[name] = event.target.value;
      // So that a change of language, or the link, shows the same.
      history.replaceState(history.state, "", `#/usage/${chosen.range}/${chosen.by}`);
      changed();
    } } }, values.map((value) => h("option", { value, selected: chosen[name] === value },
      t(`usage.${name}.${value}`)))));
  return h("div", { class: "row" }, choice("range", Object.keys(RANGES)), choice("by", SPLITS));
}

// Ask for everything and show it, unless something else was asked for meanwhile.
async function refresh(state, signal, background) {
  const { chosen: { range, by }, parts } = state;
  const turn = ++state.turn;
  const ask = (name, body) => call(name, body, { signal, background });
  const days = RANGES[range];
  try {
    const [series, daemon, byDay] = await Promise.all([
      ask("series", { range, by }), ask("daemon", {}),
      days ? ask("usage", { by: "day", days }) : null,
    ]);
    if (turn !== state.turn || signal.aborted) return;
    replace(parts.trouble);
    show(state, series, byDay);
    replace(parts.meters, meterSections(daemon.features));
  } catch (error) {
    if (!signal.aborted && turn === state.turn) replace(parts.trouble, errorBox(error));
  }
}

function show({ parts, drawn, chosen }, series, byDay) {
  showFigures(parts.figures, series);
  parts.figures.hidden = false;
  parts.charts.hidden = parts.groups.hidden = !series.total.requests;
  parts.days.hidden = !series.total.requests || !byDay;
  if (!series.total.requests) return;
  for (const { make, chart } of drawn) chart.update(make(series));
  fill(parts.groups, t(`usage.table.${chosen.by}`), charts.groups(series), series.total,
    t(`usage.by.${chosen.by}`));
  const rows = (byDay?.rows ?? []).map((row) => ({ ...row, name: row.key })).reverse();
  if (byDay) fill(parts.days, t("usage.table.day"), rows, byDay.total, t("usage.day"));
}

function showFigures(part, series) {
  const { total } = series;
  const failed = total.requests ? percent(total.failed / total.requests) : "";
  const figure = (name, value, note = "") => h("div", {}, h("dt", {}, t(`usage.figure.${name}`)),
    h("dd", {}, h("span", { class: "figure" }, value),
      note ? h("span", { class: "quiet" }, note) : null));
  replace(part, h("h2", {}, t("usage.figures")),
    h("dl", { class: "facts" },
      figure("requests", number(total.requests)),
      figure("in", short(total.input_tokens)),
      figure("out", short(total.output_tokens)),
      figure("cache", charts.cacheText(total)),
      figure("cost", costText(total)),
      figure("failed", number(total.failed), failed)),
    series.keeps ? null : h("p", {}, t("usage.off")),
    total.requests ? null : h("p", { class: "empty" }, t("usage.empty")));
}

function fill(part, title, rows, total, first) {
  const focused = part.contains(document.activeElement);
  const spent = (row) => row.input_tokens + row.output_tokens;
  const percentOf = (some, all) => percent(charts.share(some, all));
  const columns = [
    [first, (row) => row.name],
    [t("usage.figure.requests"), (row) => number(row.requests)],
    [t("usage.figure.failed"), (row) => number(row.failed)],
    [t("usage.figure.in"), (row) => number(row.input_tokens)],
    [t("usage.figure.out"), (row) => number(row.output_tokens)],
    [t("usage.figure.cache"), charts.cacheText],
    [t("usage.share"), (row) => percentOf(spent(row), spent(total))],
    [t("usage.figure.cost"), (row) => dollars(costOf(row))],
    [t("usage.no-price"), (row) => number(row.unpriced)],
    ...(rows.some(({ median }) => median) ? [[t("usage.end.median"), ({ median }) => duration(median)]] : []),
  ].map(([name, cell], place) => ({ title: name, cell, numeric: place > 0 }));
  replace(part, h("h2", {}, title), table(title, columns, rows, { empty: t("usage.empty") }));
  if (focused) part.querySelector(".scroll")?.focus({ preventScroll: true });
}
