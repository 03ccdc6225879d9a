// What failed, by what it asks of the user or by how often, each with its cure; then what byok
// repaired.

import { call } from "../api.js";
import { cureLinks, isOfModel } from "../cures.js";
import {
  ago, badge, breakable, button, copyButton, dot, dots, h, nothing, replace, section, segments, showTools,
  spark, table, withCode,
} from "../dom.js";
import { clock, number, percent } from "../format.js";
import { onRequests } from "../live.js";
import { refresher, renderAgain } from "../refresh.js";
import {
  clientOf, cut, list, mendBadges, modelOf, requestColumns, withSettings,
} from "../requests.js";
import { sentences, t } from "../texts.js";

const PERIODS = [1, 7, 30]; // days
const WEIGHTS = { needs_you: "bad", look: "warn", cured: "good" };
// What stands below one heading.
const ORDERS = { weight: [["needs_you"], ["look"], ["cured"]],
  count: [["needs_you", "look"], ["cured"]] };
const FEW = 20; // cards below a heading at first
const LONGEST = 300; // characters of what was said of a failure
const EXAMPLES = 5; // requests of a card
const SHOWN = 10; // of the last requests, before all are asked for
let days = 7; // it stays while the page is open

// `#/problems/CODE` leads to the error of that code, `#/problems/count` sorts by how often.
export async function open(root, rest, signal) {
  const shown = h("div", { class: "panel" });
  const all = new Set(); // headings below which everything is shown
  let [wanted] = rest;
  let order = "weight";
  if (Object.hasOwn(ORDERS, wanted)) [order, wanted] = [wanted, ""];
  let last = "";
  let live = new Map();
  let show = () => {};
  const load = async (options) => {
    const told = await call("problems", { days }, options);
    const text = JSON.stringify([told, days, order]);
    if (text === last) return; // nothing moves that need not
    last = text;
    show = () => renderAgain(shown, () => replace(shown, partsOf(withWords(told, live), order,
      all, show)));
    show();
    if (wanted && leadTo(shown, wanted)) wanted = "";
  };
  const { refresh, run, trouble } = refresher(load, signal);
  const period = segments(t("problems.period"), PERIODS.map((count) => [count, periodOf(count)]),
    days, (count) => { days = count; run(false); });
  const orders = segments(t("order"),
    Object.keys(ORDERS).map((name) => [name, t(`problems.by-${name}`)]), order, (name) => {
      order = name;
      history.replaceState(history.state, "", `#/problems/${name}`);
      run(false);
    });
  showTools(refresh, orders, period);
  replace(root, trouble, shown);
  onRequests(({ rows, reset }) => {
    live = rows;
    if (reset) show();
  }, signal);
  await run(false);
}

// What was said of the latest requests is known while they are live: no journal has it.
const withWords = (told, live) => ({ ...told, groups: told.groups.map((group) => ({ ...group,
  said: group.requests ? group.examples.map((one) => live.get(one.request_id)?.message).find(Boolean)
    : group.failure })) });

const periodOf = (count) => t(count === 1 ? "usage.range.day" : "problems.days", { count });

// Lead the user to the error of a code, unless they have gone elsewhere; tell whether it
// is there.
function leadTo(shown, code) {
  const titles = [...shown.querySelectorAll("article h3")];
  const title = titles.find((one) => one.dataset.code === code);
  if (document.activeElement?.matches("h1, body")) title?.focus();
  return Boolean(title);
}

function partsOf(told, order, all, show) {
  const groups = together(told.groups, order);
  if (order === "count") groups.sort((one, other) => other.requests - one.requests);
  const isWell = !groups.length && !told.models.length;
  return [damagedOf(told), ORDERS[order].map((weights) => partOf(weights,
    groups.filter(({ weight }) => weights.includes(weight)), all, show)),
  groups.length ? null : noneOf(told),
  isWell ? null : repairsOf(told), told.mended.length ? lastOf(told) : null];
}

// Return one group for the same error of several upstreams, the latest first, as `parts`.
function together(groups, order) {
  const alike = Map.groupBy(groups, ({ weight, ending, code }) =>
    JSON.stringify([order === "count" || weight, ending, code]));
  return [...alike.values()].map((parts) => ({ ...parts[0], parts,
    requests: sum(parts.map(({ requests }) => requests)),
    first: Math.min(...parts.map(({ first }) => first)),
    last: Math.max(...parts.map(({ last }) => last)),
    bars: parts[0].bars.map((_, place) => sum(parts.map(({ bars }) => bars[place]))),
    models: [...new Set(parts.flatMap(({ upstream, models }) =>
      models.map((model) => modelOf({ upstream, model }))))],
    said: parts.map(({ said }) => said).find(Boolean),
    examples: parts.flatMap(({ examples }) => examples)
      .sort((one, other) => other.started - one.started).slice(0, EXAMPLES) }));
}

const sum = (values) => values.reduce((total, value) => total + value, 0);

function damagedOf(told) {
  if (!told.damaged) return null;
  return h("p", { class: "note" }, badge("warn", t("problems.damaged")), " ",
    t("problems.damaged.why", { count: number(told.damaged) }));
}

function noneOf(told) {
  const why = told.keep_days === 0 ? t("journal.off") : !told.requests ? t("problems.unused")
    : t("problems.well.why", { count: number(told.requests) });
  return h("section", { class: "card" }, nothing("check", t("problems.none"), why));
}

function partOf(weights, groups, all, show) {
  if (!groups.length) return null;
  const [weight, isMixed] = weights;
  const tone = WEIGHTS[weight];
  const few = all.has(weight) ? groups : groups.slice(0, FEW);
  const rest = groups.length - few.length;
  const requests = sum(groups.map((group) => group.requests));
  return h("section", { class: "weight" },
    h("h2", { class: "row" }, isMixed ? t("problems.title") : [dot(tone),
      t(`problems.${weight}`)], " ",
    h("span", { class: "quiet" }, dots(t("problems.count", { count: number(groups.length) }),
      requests > 0 && t("problems.requests", { count: number(requests), period: periodOf(days) })))),
    few.map((group) => cardOf(group, isMixed)),
    rest ? button(t("problems.all", { count: number(rest) }), "",
      () => { all.add(weight); show(); }) : null);
}

function cardOf(group, isMixed) {
  const key = `${group.ending} ${group.code}`;
  return h("article", { class: "card problem" },
    h("p", { class: "times" }, h("strong", {}, timesOf(group))),
    h("div", { class: "about" },
      h("h3", { tabindex: "-1", "data-key": `problem ${key}`, "data-code": group.code },
        titleOf(group)),
      group.parts.map((part) => h("p", { class: "quiet" }, dots(
        isMixed ? badge(WEIGHTS[part.weight], t(`problems.${part.weight}`)) : null,
        part.upstream ? h("strong", {}, part.upstream) : null,
        part.ending === "retried" && part.code ? withCode(part.what ?? part.code) : null,
        group.parts.length > 1 ? timesOf(part) : null,
        outcomeOf(part)))),
      tagged("models.title", group.models),
      tagged("request.client", [...new Set(group.examples.map(({ client }) => clientOf(client)))]),
      group.weight === "cured" ? null : cureOf(group),
      h("details", { "data-key": `more ${key}` }, h("summary", {}, t("problems.examples")),
        detailsOf(group))),
    h("div", { class: "times-of" },
      spark(group.bars, WEIGHTS[group.weight], periodOf(days)),
      h("p", { class: "small quiet" },
        group.last > group.first ? [t("problems.since", { time: clock(group.first) }), h("br")] : null,
        t("problems.last"), " ", ago(group.last))));
}

// What no request has met was found out otherwise, and goes on.
const timesOf = ({ requests }) =>
  (requests ? t("problems.times", { count: number(requests) }) : t("problems.now"));

const tagged = (title, names) => (names.length ? h("p", { class: "row tight" },
  h("span", { class: "small quiet" }, t(title)),
  names.map((name) => h("span", { class: "tag" }, breakable(name)))) : null);

function titleOf({ ending, what }) {
  if (ending !== "failed") return t(`problems.${ending}`);
  return what ? withCode(what) : t("problems.unknown-code");
}

function outcomeOf({ ending, requests, last, by_list: isByList, goes_on: goesOn, answers }) {
  if (!requests) {
    return isByList ? t("health.by-list") : t("problems.earlier", { time: clock(last) });
  }
  if (ending !== "failed") return t(`problems.${ending}.what`);
  return t(`problems.${!goesOn ? "over" : answers ? "answering" : "goes-on"}`);
}

// What was said of this very failure comes first, if it is known; what helps in general is below.
function cureOf(group) {
  const { said, parts, cures: [first = "", ...others] = [] } = group;
  const links = cureLinks(group, parts);
  if (!said && !first && !links.length) return null;
  const of = (...texts) => withSettings(sentences(...texts), parts[0].upstream);
  const known = isOfModel(group.code) && !parts.some((one) => one.named_in)
    ? h("p", { class: "small" }, t("problems.by-client")) : null;
  return [h("div", { class: "cure" }, h("p", { class: "grow" }, said
    ? [t("problems.said"), " ", h("q", {}, cut(said, LONGEST))]
    : [h("strong", {}, t("error.cures")), " ", of(first)]), links), known,
  saysCure(group) ? null
    : said ? h("p", { class: "small quiet" }, t("error.cures"), " ", of(first, ...others))
      : others.length ? h("p", { class: "small" }, of(...others)) : null];
}

// Tell whether what was said has byok's own advice in it, as where it asked an upstream by itself.
const saysCure = ({ said, requests }) => said && !requests;

function detailsOf({ code, ending, causes = [], cures = [], examples, parts, ...group }) {
  return [
    saysCure(group) ? [h("p", { class: "quiet" }, t("error.cures")),
      h("ul", {}, cures.map((cure) => h("li", {}, withSettings(cure, parts[0].upstream))))] : null,
    causes.length ? [h("p", { class: "quiet" }, t("error.causes")), list(causes)] : null,
    code ? h("p", { class: "row tight small quiet" }, t("problems.code"), h("code", {}, code),
      copyButton(code)) : null,
    examples.length ? table(t("pair", { name: t("problems.latest"), value: code || ending }), [
      ...Object.values(requestColumns("failed")), idColumn()], examples)
      : null];
}

const idColumn = () => ({ title: t("request.id"),
  cell: (one) => h("span", { class: "mono names" }, one.request_id) });

function repairsOf(told) {
  const rows = [...told.models].sort((one, other) => share(other) - share(one));
  return section(t("problems.by-model"),
    h("p", { class: "quiet" }, t("problems.repairs.why")),
    table(t("problems.by-model"), modelColumns(), rows, { empty: t("problems.no-repairs") }),
    rows.length ? h("details", { "data-key": "words" },
      h("summary", {}, t("problems.words")), wordsOf()) : null);
}

const share = (row) => (row.answers ? row.mended / row.answers : 0);

function modelColumns() {
  const count = (name) => ({ title: t(`problems.${name}`), numeric: true,
    cell: (row) => number(row[name]) });
  return [
    { title: t("request.model"), lead: true,
      cell: (row) => breakable(row.model || t("timeline.no-model")) },
    count("answers"),
    { title: t("problems.mended"), numeric: true,
      cell: (row) => (row.answers
        ? `${number(row.mended)} (${percent(share(row))})` : number(row.mended)) },
    ...["repairs", "dropped_calls", "retries", "loops", "notices"].map(count),
  ];
}

function wordsOf() {
  const words = ["repairs", "dropped_calls", "retries", "loops", "notices"];
  return h("dl", { class: "words" }, words.map((name) =>
    h("div", {}, h("dt", {}, t(`problems.${name}`)), h("dd", {}, t(`problems.${name}.what`), " ",
      t(`problems.${name}.do`)))));
}

function lastOf(told) {
  const { time, model, conversation } = requestColumns("mended");
  const columns = [time, model, { title: t("problems.what"), cell: mendBadges }, conversation];
  const title = t("problems.last-mended");
  const rest = told.mended.slice(SHOWN);
  return section(title, table(title, columns, told.mended.slice(0, SHOWN)),
    rest.length ? h("details", { "data-key": "mended" },
      h("summary", {}, t("problems.more", { count: number(rest.length) })),
      table(t("problems.more", { count: number(rest.length) }), columns, rest)) : null);
}
