// What it cost, and which model: today in a sentence, then a period by model and over time.

import { call } from "../api.js";
import { createChart } from "../charts.js";
import {
  attempt, breakable, dots, errorBox, flushSection, h, healthCard, measured, menu, nothing, replace,
  section, segments, table, withCode,
} from "../dom.js";
import { meterSections } from "../feature-status.js";
import { duration, number, percent, short, spent } from "../format.js";
import { follow, renderAgain } from "../refresh.js";
import {
  cacheFigures, clientOf, costCell, costOf, costText, endBadge, expiryOf, keepCache, kindOf,
  modelAddress, problemOf, promptChange, requestColumns, retriedAfter, timesOf, unpricedText, usedOf,
} from "../requests.js";
import { t } from "../texts.js";
import * as charts from "./usage-charts.js";

// The periods, each offered from so many known days on: as soon as it shows more than another.
const RANGES = { day: 0, week: 2, month: 8, this_month: 8, quarter: 31 };
const MOST_KNOWN = 90; // days
const SPLITS = ["model", "client", "purpose"];
const PAUSE = 4000; // milliseconds from the end of a request to its place in the charts
const CHARTS = [
  ["cost", "bars", charts.cost],
  ["by", "bars", charts.tokensBy],
  ["tokens", "bars", charts.tokens],
  ["cache", "lines", charts.cache],
  ["requests", "bars", charts.requests],
  ["speed", "lines", charts.speed],
];

// The requests that stand out, and by what.
const LARGEST = { costliest: "cost", slowest: "seconds", failed: "failed" };

// `#/usage/slowest` unfolds the part of that name, `#/usage/RANGE/BY/slowest/DAY` that of a day.
export async function open(root, [range, by, wanted = range, day = ""], signal) {
  const known = await daysKnown(signal);
  const chosen = { range: Object.hasOwn(RANGES, range) ? range : known > 1 ? "week" : "day",
    by: SPLITS.includes(by) ? by : "model" };
  const drawn = CHARTS.map(([name, kind, make]) =>
    ({ make, chart: createChart(t(`usage.${name}.title`), kind, signal) }));
  const [first, ...others] = drawn.map(({ chart }) => chart.element);
  const parts = { trouble: h("div"), now: h("div"), meters: h("div"),
    figures: section(t("usage.figures")), first, groups: flushSection("", null),
    more: h("details", { class: "more-charts", open: known > 1 },
      h("summary", {}, t("usage.more")), h("div", { class: "charts" }, others)),
    days: flushSection("", null),
    largest: Object.keys(LARGEST).map((name) => largestPart(name, day, signal)) };
  // What has nothing to show is not there: an empty chart says nothing.
  for (const name of ["figures", "first", "groups", "more", "days"]) parts[name].hidden = true;
  const state = { chosen, parts, drawn, day, turn: 0 };
  const load = (background) => refresh(state, signal, background);
  parts.choices = choices(chosen, known, day && `/${wanted}/${day}`, () => load(false));
  replace(root, parts.trouble, parts.now, parts.meters, parts.choices, parts.figures, parts.first,
    parts.groups, parts.more, parts.days, parts.largest);
  await load(false);
  // When nothing above it grows any more.
  parts.largest.filter((part) => part.dataset.name === wanted).forEach(leadTo);
  follow(() => load(true), signal, PAUSE);
}

const addressOf = ({ range, by }) => `#/usage/${range}/${by}`;

// Return a part that is asked for when it is unfolded.
function largestPart(name, day, signal) {
  const body = h("div", { class: "card flush" });
  const title = day ? t(`usage.${name}.day`, { day: charts.dayName(day) }) : t(`usage.${name}`);
  const sort = LARGEST[name];
  const load = async (part) => {
    const { requests, errors } = await call("largest", { sort, day }, { signal });
    const { time, kind, model, conversation } = requestColumns("slow");
    // What is large has a bar, and says why.
    const column = (field, title, text, why) => ({ title: t(title), wide: why, numeric: !why,
      cell: (one) => [
        measured(field === sort && one[sort] / requests[0][sort], text(one[field])),
        why && h("span", { class: "sub" }, why(one))] });
    const isDear = sort === "cost";
    const end = (one) => [kind.cell(one), " ", endBadge(one, errors), errors[one.error]
      ? h("a", { class: "sub", href: problemOf(one.error) }, withCode(errors[one.error].what)) : null,
    h("span", { class: "sub" }, retriedAfter(one, errors))];
    replace(body, table(title, [time, { ...kind, cell: end }, model,
      column("seconds", "request.duration", duration, !isDear && whySlow),
      column("cost", "request.cost", spent, isDear && whyDear), conversation], requests,
    { empty: [t(`usage.${name}.none`), " ", isDear ? priceHow() : null] }));
    if (part.dataset.led === String(scrollY)) leadTo(part); // nobody went elsewhere meanwhile
    delete part.dataset.led;
  };
  const toggle = ({ target }) => target.open && attempt(body, signal, () => load(target));
  return h("details", { class: "more-charts", "data-name": name, on: { toggle } },
    h("summary", {}, title), body);
}

// Unfold a part and lead the user there; once more when its list has come.
function leadTo(part) {
  const isNew = !part.open;
  part.open = true;
  part.scrollIntoView();
  if (isNew) part.dataset.led = scrollY;
  part.firstChild.focus({ preventScroll: true });
}

const whyDear = (one) => dots(...usedOf(one),
  one.note && [expiryOf(one.note), " ", keepCache(one.upstream)],
  one.prompt_change && promptChange(one));

const whySlow = (one) => dots(...usedOf(one), timesOf(one));

// Say where a price is set that nobody knows.
const priceHow = () => [t("usage.price-how"), " ",
  h("a", { href: "#/settings/find/facts%20price" }, t("editors.how"))];

// Return how many days before now the first known request was, 0 without any.
async function daysKnown(signal) {
  const { rows } = await call("usage", { by: "day", days: MOST_KNOWN }, { signal });
  if (!rows.length) return 0;
  return Math.ceil((Date.now() - new Date(`${rows[0].key}T00:00`)) / 86_400_000);
}

function choices(chosen, known, more, changed) {
  const choose = (name, value) => {
    chosen[name] = value;
    // So that a change of language, or the link, shows the same.
    history.replaceState(history.state, "", addressOf(chosen) + more);
    changed();
  };
  const offered = Object.keys(RANGES).filter((name) =>
    known >= RANGES[name] || name === chosen.range);
  const ranges = offered.length < 2 ? null : segments(t("problems.period"),
    offered.map((name) => [name, charts.rangeName(name)]), chosen.range,
    (name) => choose("range", name));
  return h("div", { class: "row" }, ranges, h("label", { class: "row" },
    h("span", { class: "quiet small" }, t("usage.by")),
    menu(t("usage.by"), SPLITS.map((name) => [name, t(`usage.by.${name}`)]),
      (name) => choose("by", name), chosen.by)));
}

// Ask for everything and show it, unless something else was asked for meanwhile.
async function refresh(state, signal, background) {
  const { chosen: { range, by }, parts } = state;
  const turn = ++state.turn;
  const ask = (name, body) => call(name, body, { signal, background });
  try {
    const [series, today, daemon] = await Promise.all([
      ask("series", { range, by }), ask("today", {}), ask("daemon", {}),
    ]);
    if (turn !== state.turn || signal.aborted) return;
    if (by === "client") series.names = series.names.map(clientOf);
    if (by === "purpose") series.names = series.names.map((purpose) => kindOf({ purpose }));
    replace(parts.trouble);
    showToday(state, today);
    show(state, series);
    replace(parts.meters, meterSections(daemon.features));
  } catch (error) {
    if (!signal.aborted && turn === state.turn) replace(parts.trouble, errorBox(error));
  }
}

function showToday({ chosen, parts: { now, largest }, day }, today) {
  const act = day || !today.requests ? null : largest.map((part) => h("a", { class: "button",
    href: `${addressOf(chosen)}/${part.dataset.name}` }, part.firstChild.textContent));
  renderAgain(now, () => replace(now, healthCard(null, { tone: "spent", picture: "usage",
    say: t("usage.now", { cost: costText(today) }), act, next: t("usage.now.requests",
      { count: number(today.requests), before: number(today.yesterday) }) })));
}

function show({ parts, drawn, chosen }, series) {
  const { total, days } = series;
  showFigures(parts.figures, series);
  parts.figures.hidden = false;
  parts.groups.hidden = parts.more.hidden = !total.requests;
  parts.first.hidden = !total.cost; // an empty chart would say that nothing costs
  parts.days.hidden = !days.length;
  if (!total.requests) return;
  if (!total.cost) parts.more.open = true;
  for (const { make, chart } of drawn) chart.update(make(series));
  const groups = charts.groups(series).map((row, place) => ({ ...row,
    href: chosen.by === "model" && series.names[place] && modelAddress(series.names[place]) }));
  fill(parts.groups, t(`usage.table.${chosen.by}`), groups, t(`usage.by.${chosen.by}`));
  const rows = days.map((row) => ({ ...row, name: charts.dayName(row.key),
    href: `${addressOf(chosen)}/${row.cost ? "costliest" : "slowest"}/${row.key}`,
    failures: `${addressOf(chosen)}/failed/${row.key}` })).reverse();
  fill(parts.days, t("usage.table.day"), rows, t("usage.day"));
}

function showFigures(part, series) {
  const { total, cache } = series;
  const figure = (name, value, note = "", links = null) => h("div", {},
    h("dt", {}, t(name)), h("dd", {}, h("span", { class: "figure" }, value),
      note ? h("span", { class: "quiet small" }, note) : null,
      links ? h("span", { class: "small" }, links) : null));
  replace(part, h("h2", {}, charts.period(series)), total.requests ? h("dl", { class: "facts" },
    figure("request.cost", spent(costOf(total)), unpricedText(total)),
    figure("usage.figure.requests", number(total.requests), total.failed
      ? t("usage.figure.failed-of", { count: number(total.failed),
        share: percent(total.failed / total.requests) }) : ""),
    figure("request.tokens", `${short(total.input_tokens)} / ${short(total.output_tokens)}`),
    figure("usage.figure.cache", charts.cacheText(total), charts.untoldText(total)),
    cacheFigures(cache).map(([name, ...told]) => figure(`usage.figure.${name}`, ...told)))
    : nothing("usage", t("usage.empty"), t("usage.empty.about")),
  total.unpriced ? h("p", { class: "quiet small" }, priceHow()) : null,
  cacheFigures(cache).length ? h("p", { class: "quiet small" }, t("usage.cache.how")) : null,
  series.keeps ? null : h("p", {}, t("journal.off")));
}

// Show sums by name; what nobody knows is no zero, and has no bar.
function fill(part, title, rows, first) {
  const most = Math.max(...rows.map((row) => row.cost), 0.01);
  const columns = [
    { title: first, lead: true, cell: ({ name, href }) => (href
      ? h("a", { href }, breakable(name)) : breakable(name)) },
    { title: t("request.cost"), numeric: true,
      cell: (row) => costCell(row, most) },
    ...[
      [t("usage.figure.requests"), (row) => number(row.requests)],
      [t("usage.figure.failed"), ({ failed, failures: href }) => (!failed ? "–"
        : href ? h("a", { href }, number(failed)) : number(failed))],
      [t("usage.figure.in"), (row) => short(row.input_tokens)],
      [t("usage.figure.out"), (row) => short(row.output_tokens)],
      [t("request.cached"), charts.cacheText],
      ...(rows.some(({ median }) => median)
        ? [[t("usage.end.median"), ({ median }) => duration(median)]] : []),
    ].map(([name, cell]) => ({ title: name, cell, numeric: true })),
  ];
  renderAgain(part, () => replace(part, h("div", { class: "head" }, h("h2", {}, title)),
    table(title, columns, rows, { empty: t("usage.empty") })));
}
