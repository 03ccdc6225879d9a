// What models cost: today in a sentence, then a period, by model and over time.

import { call } from "../api.js";
import { createChart } from "../charts.js";
import {
  attempt, breakable, emptyState, errorBox, flushSection, h, healthCard, joinWithDots, menu,
  replace, section, segments, showTools, table, valueWithBar, withCode,
} from "../dom.js";
import { meterSections } from "../feature-status.js";
import { amountSpent, duration, number, percent, shortNumber } from "../format.js";
import { setAddress } from "../places.js";
import { followRequests, renderAgain } from "../refresh.js";
import {
  cacheFigures, cacheLossText, clientName, costCell, costOf, costText, endBadge, keepCacheLink,
  kindOf, modelAddress, problemAddress, promptChangeText, requestColumns, retryReasons, timingText,
  unpricedText, usageParts,
} from "../requests.js";
import { t } from "../texts.js";
import * as charts from "./usage-charts.js";

// The periods, and how many days must be known before each is offered: it would show no more than a
// shorter one before.
const RANGES = { day: 0, week: 2, month: 8, this_month: 8, quarter: 31 };
const MAX_DAYS = 90; // of the longest period
const SPLITS = ["model", "client", "purpose"];
const JOURNAL_DELAY_MS = 4000; // from the end of a request until it is in the series
// Each chart: the name of its texts, its kind, and what creates its content.
const CHARTS = [
  ["cost", "bars", charts.cost],
  ["by", "bars", charts.tokensBy],
  ["tokens", "bars", charts.tokens],
  ["cache", "lines", charts.cache],
  ["requests", "bars", charts.requests],
  ["speed", "lines", charts.speed],
];

// The lists of requests that stand out, and the field by which.
const LARGEST_LISTS = { costliest: "cost", slowest: "seconds", failed: "failed" };

// `#/usage/slowest` opens that list, `#/usage/RANGE/BY/slowest/DAY` the one of a day.
export async function open(root, [range, by, soughtPart = range, day = ""], signal) {
  const knownDays = await countKnownDays(signal);
  const chosen = { range: Object.hasOwn(RANGES, range) ? range : knownDays > 1 ? "week" : "day",
    by: SPLITS.includes(by) ? by : "model" };
  const chartEntries = CHARTS.map(([name, kind, make]) =>
    ({ make, chart: createChart(t(`usage.${name}.title`), kind, signal) }));
  const [first, ...others] = chartEntries.map(({ chart }) => chart.element);
  const parts = { errorSlot: h("div"), now: h("div"), meters: h("div"),
    figures: section(t("usage.figures")), first, groups: flushSection("", null),
    more: h("details", { class: "more-charts", open: knownDays > 1 },
      h("summary", {}, t("usage.more")), h("div", { class: "charts" }, others)),
    days: flushSection("", null),
    largest: Object.keys(LARGEST_LISTS).map((name) => largestPart(name, day, signal)) };
  // A part is hidden while it has nothing to show.
  for (const name of ["figures", "first", "groups", "more", "days"]) parts[name].hidden = true;
  const state = { chosen, parts, chartEntries, day, generation: 0 };
  const load = (background) => refresh(state, signal, background);
  showTools(...chooserParts(chosen, knownDays, day && `/${soughtPart}/${day}`, () => load(false)));
  replace(root, parts.errorSlot, parts.now, parts.meters, parts.figures, parts.first, parts.groups,
    parts.more, parts.days, parts.largest);
  await load(false);
  // Only now, when nothing above the part grows any more.
  parts.largest.filter((part) => part.dataset.name === soughtPart).forEach(leadTo);
  followRequests(() => load(true), signal, JOURNAL_DELAY_MS);
}

const usageAddress = ({ range, by }) => `#/usage/${range}/${by}`;

// Return a list of requests that is loaded when it is opened.
function largestPart(name, day, signal) {
  const body = h("div", { class: "card flush" });
  const title = day ? t(`usage.${name}.day`, { day: charts.dayName(day) }) : t(`usage.${name}`);
  const sort = LARGEST_LISTS[name];
  const load = async (part) => {
    const { requests, errors } = await call("largest", { sort, day }, { signal });
    const { time, kind, model, conversation } = requestColumns("slow");
    // The column by which the list is sorted has bars, and says why a value is large.
    const column = (field, title, text, explain) => ({
      title: t(title), wide: explain, numeric: !explain,
      cell: (request) => [
        valueWithBar(field === sort && request[sort] / requests[0][sort], text(request[field])),
        explain && h("span", { class: "sub" }, explain(request))] });
    const isByCost = sort === "cost";
    const kindAndEnd = (request) => {
      const row = errors[request.error];
      return [kind.cell(request), " ", endBadge(request, errors),
        row ? h("a", { class: "sub", href: problemAddress(request.error) }, withCode(row.what)) : null,
        h("span", { class: "sub" }, retryReasons(request, errors))];
    };
    replace(body, table(title, [time, { ...kind, cell: kindAndEnd }, model,
      column("seconds", "request.duration", duration, !isByCost && timeReason),
      column("cost", "request.cost", amountSpent, isByCost && costReason), conversation], requests,
    { empty: [t(`usage.${name}.none`), " ", isByCost ? priceHint() : null] }));
    if (part.dataset.led === String(scrollY)) leadTo(part); // the user has not scrolled
    delete part.dataset.led;
  };
  const toggle = ({ target }) => target.open && attempt(body, signal, () => load(target));
  return h("details", { class: "more-charts", "data-name": name, on: { toggle } },
    h("summary", {}, title), body);
}

// Open a part and lead the user there, once more when its list has been loaded.
function leadTo(part) {
  const wasFolded = !part.open;
  part.open = true;
  part.scrollIntoView();
  if (wasFolded) part.dataset.led = scrollY;
  part.firstChild.focus({ preventScroll: true });
}

const costReason = (request) => joinWithDots(...usageParts(request),
  request.note && [cacheLossText(request.note), " ", keepCacheLink(request.upstream)],
  request.prompt_change && promptChangeText(request));

const timeReason = (request) => joinWithDots(...usageParts(request), timingText(request));

// Return where to set a price that is unknown.
const priceHint = () => [t("usage.price-how"), " ",
  h("a", { href: "#/settings/find/facts%20price" }, t("editors.how"))];

// Return how many days ago the first known request was, 0 if there is none.
async function countKnownDays(signal) {
  const { rows } = await call("usage", { by: "day", days: MAX_DAYS }, { signal });
  if (!rows.length) return 0;
  return Math.ceil((Date.now() - new Date(`${rows[0].key}T00:00`)) / 86_400_000);
}

// Return the menu that groups what is shown, and the periods that can be chosen.
function chooserParts(choice, knownDays, suffix, onChange) {
  const choose = (name, value) => {
    choice[name] = value;
    setAddress(usageAddress(choice) + suffix);
    onChange();
  };
  const offered = Object.keys(RANGES).filter((name) =>
    knownDays >= RANGES[name] || name === choice.range);
  return [h("label", { class: "row" }, h("span", { class: "quiet small" }, t("usage.by")),
    menu(t("usage.by"), SPLITS.map((name) => [name, t(`usage.by.${name}`)]),
      (name) => choose("by", name), choice.by)),
  offered.length < 2 ? null : segments(t("problems.period"),
    offered.map((name) => [name, charts.rangeName(name)]), choice.range,
    (name) => choose("range", name))];
}

// Load everything and show it, unless another choice was made meanwhile.
async function refresh(state, signal, background) {
  const { chosen: { range, by }, parts } = state;
  const generation = ++state.generation;
  const load = (name, body) => call(name, body, { signal, background });
  try {
    const [series, today, daemon] = await Promise.all([
      load("series", { range, by }), load("today", {}), load("daemon", {}),
    ]);
    if (generation !== state.generation || signal.aborted) return;
    if (by === "client") series.names = series.names.map(clientName);
    if (by === "purpose") series.names = series.names.map((purpose) => kindOf({ purpose }));
    replace(parts.errorSlot);
    showToday(state, today);
    show(state, series);
    replace(parts.meters, meterSections(daemon.features));
  } catch (error) {
    if (!signal.aborted && generation === state.generation) replace(parts.errorSlot, errorBox(error));
  }
}

function showToday({ chosen, parts: { now, largest }, day }, today) {
  const links = day || !today.requests ? null : largest.map((part) => h("a", { class: "button",
    href: `${usageAddress(chosen)}/${part.dataset.name}` }, part.firstChild.textContent));
  renderAgain(now, healthCard(null, { tone: "spent", picture: "usage",
    headline: t("usage.now", { cost: costText(today) }), actions: links, detail: t("usage.now.requests",
      { count: number(today.requests), before: number(today.yesterday) }) }));
}

function show({ parts, chartEntries, chosen }, series) {
  const { total, days } = series;
  showFigures(parts.figures, series);
  parts.figures.hidden = false;
  parts.groups.hidden = parts.more.hidden = !total.requests;
  parts.first.hidden = !total.cost; // an empty chart would say that nothing costs
  parts.days.hidden = !days.length;
  if (!total.requests) return;
  if (!total.cost) parts.more.open = true;
  for (const { make, chart } of chartEntries) chart.update(make(series));
  const groups = charts.sumGroups(series).map((row, place) => ({ ...row,
    href: chosen.by === "model" && series.names[place] && modelAddress(series.names[place]) }));
  fillTable(parts.groups, t(`usage.table.${chosen.by}`), groups, t(`usage.by.${chosen.by}`));
  const rows = days.map((row) => ({ ...row, name: charts.dayName(row.key),
    href: `${usageAddress(chosen)}/${row.cost ? "costliest" : "slowest"}/${row.key}`,
    failures: `${usageAddress(chosen)}/failed/${row.key}` })).reverse();
  fillTable(parts.days, t("usage.table.day"), rows, t("usage.day"));
}

function showFigures(part, series) {
  const { total, cache } = series;
  const figure = (name, value, note = "", links = null) => h("div", {},
    h("dt", {}, t(name)), h("dd", {}, h("span", { class: "figure" }, value),
      note ? h("span", { class: "quiet small" }, note) : null,
      links ? h("span", { class: "small" }, links) : null));
  replace(part, h("h2", {}, charts.period(series)), total.requests ? h("dl", { class: "facts" },
    figure("request.cost", amountSpent(costOf(total)), unpricedText(total)),
    figure("usage.figure.requests", number(total.requests), total.failed
      ? t("usage.figure.failed-of", { count: number(total.failed),
        share: percent(total.failed / total.requests) }) : ""),
    figure("request.tokens", `${shortNumber(total.input_tokens)} / ${shortNumber(total.output_tokens)}`),
    figure("usage.figure.cache", charts.cacheText(total), charts.cacheUnknownText(total)),
    cacheFigures(cache).map(([name, ...texts]) => figure(`usage.figure.${name}`, ...texts)))
    : emptyState("usage", t("usage.empty"), t("usage.empty.about")),
  total.unpriced ? h("p", { class: "quiet small" }, priceHint()) : null,
  cacheFigures(cache).length ? h("p", { class: "quiet small" }, t("usage.cache.how")) : null,
  series.keeps ? null : h("p", {}, t("journal.off")));
}

// Show a table of sums by name.
function fillTable(part, title, rows, nameTitle) {
  const largestCost = Math.max(...rows.map((row) => row.cost), 0.01);
  const columns = [
    { title: nameTitle, lead: true, cell: ({ name, href }) => (href
      ? h("a", { href }, breakable(name)) : breakable(name)) },
    { title: t("request.cost"), numeric: true,
      cell: (row) => costCell(row, largestCost) },
    ...[
      [t("usage.figure.requests"), (row) => number(row.requests)],
      [t("usage.figure.failed"), ({ failed, failures: href }) => (!failed ? "–"
        : href ? h("a", { href }, number(failed)) : number(failed))],
      [t("usage.figure.in"), (row) => shortNumber(row.input_tokens)],
      [t("usage.figure.out"), (row) => shortNumber(row.output_tokens)],
      [t("request.cached"), charts.cacheText],
      ...(rows.some(({ median }) => median)
        ? [[t("usage.end.median"), ({ median }) => duration(median)]] : []),
    ].map(([name, cell]) => ({ title: name, cell, numeric: true })),
  ];
  renderAgain(part, h("div", { class: "head" }, h("h2", {}, title)),
    table(title, columns, rows, { empty: t("usage.empty") }));
}
