// The problems: what failed, ordered by what it asks of the user or by how often it happened, each
// with its cure; then what byok mended.

import { call } from "../api.js";
import { cureLinks, isCuredByOtherModel } from "../cures.js";
import {
  ago, badge, breakable, button, copyButton, dot, emptyState, h, joinWithDots, replace, section,
  segments, showTools, sparkline, table, withCode,
} from "../dom.js";
import { clock, number, percent } from "../format.js";
import { onRequests } from "../live.js";
import { setAddress } from "../places.js";
import { createRefresher, renderAgain } from "../refresh.js";
import {
  clientName, mendBadges, modelOf, requestColumns, sentenceList, shorten, withSettingLinks,
} from "../requests.js";
import { joinSentences, t } from "../texts.js";

const PERIODS = [1, 7, 30]; // days
const WEIGHT_TONES = { needs_you: "bad", look: "warn", cured: "good" };
// The sections of the panel in each order, as lists of the weights of their problems.
const SECTIONS_BY_ORDER = { weight: [["needs_you"], ["look"], ["cured"]],
  count: [["needs_you", "look"], ["cured"]] };
// What is mended in answers, as counted by model.
const MENDS = ["repairs", "dropped_calls", "retries", "loops", "notices"];
const FIRST_CARDS = 20; // of a section, before all are shown
const MAX_QUOTE_LENGTH = 300; // characters of the message of a failure
const MAX_EXAMPLES = 5; // requests of a card
const FIRST_MENDED = 10; // of the last mended requests, before all are shown
let days = 7; // the period that is chosen; it stays while the page is open

// `#/problems/CODE` leads to the error of that code, `#/problems/count` orders by how often.
export async function open(root, parts, signal) {
  const content = h("div", { class: "panel" });
  const expanded = new Set(); // the weights whose sections show all of their cards
  let [soughtCode] = parts;
  let order = "weight";
  if (Object.hasOwn(SECTIONS_BY_ORDER, soughtCode)) [order, soughtCode] = [soughtCode, ""];
  let lastText = "";
  let liveRows = new Map();
  let show = () => {};
  const load = async (options) => {
    const answer = await call("problems", { days }, options);
    const text = JSON.stringify([answer, days, order]);
    if (text === lastText) return; // so that nothing moves without need
    lastText = text;
    show = () => renderAgain(content, createContent(withMessages(answer, liveRows), order, expanded, show));
    show();
    if (soughtCode && leadTo(content, soughtCode)) soughtCode = "";
  };
  const { refreshButton, reload, errorSlot } = createRefresher(load, signal);
  const period = segments(t("problems.period"), PERIODS.map((count) => [count, periodText(count)]),
    days, (count) => { days = count; reload(false); });
  const orders = segments(t("order"),
    Object.keys(SECTIONS_BY_ORDER).map((name) => [name, t(`problems.by-${name}`)]), order, (name) => {
      order = name;
      setAddress(`#/problems/${name}`);
      reload(false);
    });
  showTools(refreshButton, orders, period);
  replace(root, errorSlot, content);
  onRequests(({ rows, reset }) => {
    liveRows = rows;
    if (reset) show();
  }, signal);
  await reload(false);
}

// Return the answer with a `message` of each group. The journal has no messages of requests, so only
// those of live requests are known.
function withMessages(answer, liveRows) {
  const messageOf = ({ requests, examples, failure }) => (requests
    ? examples.map((request) => liveRows.get(request.request_id)?.message).find(Boolean) : failure);
  return { ...answer,
    groups: answer.groups.map((group) => ({ ...group, message: messageOf(group) })) };
}

const periodText = (count) => t(count === 1 ? "usage.range.day" : "problems.days", { count });

// Lead the user to the error of a code, unless they have moved the focus. Return whether there is
// such an error.
function leadTo(content, code) {
  const titles = [...content.querySelectorAll("article h3")];
  const title = titles.find((one) => one.dataset.code === code);
  if (document.activeElement?.matches("h1, body")) title?.focus();
  return Boolean(title);
}

function createContent(answer, order, expanded, show) {
  const groups = mergeGroups(answer.groups, order);
  if (order === "count") groups.sort((one, other) => other.requests - one.requests);
  const isWell = !groups.length && !answer.models.length;
  return [damageNote(answer), SECTIONS_BY_ORDER[order].map((weights) => groupSection(weights,
    groups.filter(({ weight }) => weights.includes(weight)), expanded, show)),
  groups.length ? null : emptySection(answer),
  isWell ? null : modelSection(answer), answer.mended.length ? mendedSection(answer) : null];
}

// Merge the groups of the same error into one, whose `parts` are those of the upstreams.
function mergeGroups(groups, order) {
  const alike = Map.groupBy(groups, ({ weight, ending, code }) =>
    JSON.stringify([order === "count" || weight, ending, code]));
  return [...alike.values()].map((parts) => ({ ...parts[0], parts,
    requests: sum(parts.map(({ requests }) => requests)),
    first: Math.min(...parts.map(({ first }) => first)),
    last: Math.max(...parts.map(({ last }) => last)),
    bars: parts[0].bars.map((_, index) => sum(parts.map(({ bars }) => bars[index]))),
    models: [...new Set(parts.flatMap(({ upstream, models }) =>
      models.map((model) => modelOf({ upstream, model }))))],
    message: parts.map(({ message }) => message).find(Boolean),
    examples: parts.flatMap(({ examples }) => examples)
      .sort((one, other) => other.started - one.started).slice(0, MAX_EXAMPLES) }));
}

const sum = (values) => values.reduce((total, value) => total + value, 0);

function damageNote(answer) {
  if (!answer.damaged) return null;
  return h("p", { class: "note" }, badge("warn", t("problems.damaged")), " ",
    t("problems.damaged.why", { count: number(answer.damaged) }));
}

function emptySection(answer) {
  const reason = answer.keep_days === 0 ? t("journal.off") : !answer.requests ? t("problems.unused")
    : t("problems.well.why", { count: number(answer.requests) });
  return h("section", { class: "card" }, emptyState("check", t("problems.none"), reason));
}

// Return the section for problems of some weights; with several, each card shows its own weight.
function groupSection(weights, groups, expanded, show) {
  if (!groups.length) return null;
  const [weight] = weights;
  const isMixed = weights.length > 1;
  const tone = WEIGHT_TONES[weight];
  const cards = expanded.has(weight) ? groups : groups.slice(0, FIRST_CARDS);
  const hiddenCount = groups.length - cards.length;
  const requests = sum(groups.map((group) => group.requests));
  return h("section", { class: "weight" },
    h("h2", { class: "row" }, isMixed ? t("problems.title") : [dot(tone),
      t(`problems.${weight}`)], " ",
    h("span", { class: "quiet" }, joinWithDots(t("problems.count", { count: number(groups.length) }),
      requests > 0 && t("problems.requests", { count: number(requests), period: periodText(days) })))),
    cards.map((group) => problemCard(group, isMixed)),
    hiddenCount ? button(t("problems.all", { count: number(hiddenCount) }), "",
      () => { expanded.add(weight); show(); }) : null);
}

function problemCard(group, isMixed) {
  const key = `${group.ending} ${group.code}`;
  return h("article", { class: "card problem" },
    h("p", { class: "times" }, h("strong", {}, countText(group))),
    h("div", { class: "about" },
      h("h3", { tabindex: "-1", "data-key": `problem ${key}`, "data-code": group.code },
        problemTitle(group)),
      group.parts.map((part) => h("p", { class: "quiet" }, joinWithDots(
        isMixed ? badge(WEIGHT_TONES[part.weight], t(`problems.${part.weight}`)) : null,
        part.upstream ? h("strong", {}, part.upstream) : null,
        part.ending === "retried" && part.code
          ? withCode((part.what ?? part.code).replace(/[.。]$/u, "")) : null,
        group.parts.length > 1 ? countText(part) : null,
        outcomeText(part)))),
      tagRow("models.title", group.models),
      tagRow("request.client", [...new Set(group.examples.map(({ client }) => clientName(client)))]),
      group.weight === "cured" ? null : problemCure(group),
      h("details", { "data-key": `more ${key}` }, h("summary", {}, t("problems.examples")),
        problemDetails(group))),
    h("div", { class: "times-of" },
      sparkline(group.bars, WEIGHT_TONES[group.weight], periodText(days)),
      h("p", { class: "small quiet" },
        group.last > group.first ? [t("problems.since", { time: clock(group.first) }), h("br")] : null,
        t("problems.last"), " ", ago(group.last))));
}

// Return how often a problem happened. One without a request was found by a check, and goes on.
const countText = ({ requests }) =>
  (requests ? t("problems.times", { count: number(requests) }) : t("problems.now"));

const tagRow = (title, names) => (names.length ? h("p", { class: "row tight" },
  h("span", { class: "small quiet" }, t(title)),
  names.map((name) => h("span", { class: "tag" }, breakable(name)))) : null);

function problemTitle({ ending, what }) {
  if (ending !== "failed") return t(`problems.${ending}`);
  return what ? withCode(what) : t("problems.unknown-code");
}

function outcomeText({ ending, requests, last, by_list: isByList, goes_on: goesOn, answers }) {
  if (!requests) {
    return isByList ? t("health.by-list") : t("problems.earlier", { time: clock(last) });
  }
  if (ending !== "failed") return t(`problems.${ending}.what`);
  return t(`problems.${!goesOn ? "over" : answers ? "answering" : "goes-on"}`);
}

// Return what to do about a problem: first the message of this very failure, if it is known, then
// what helps in general.
function problemCure(group) {
  const { message, parts, cures: [first = "", ...others] = [] } = group;
  const links = cureLinks(group, parts);
  if (!message && !first && !links.length) return null;
  const linkSettings = (...texts) => withSettingLinks(joinSentences(...texts), parts[0].upstream);
  // A model that no setting names is changed where it was chosen, and only there.
  const [best, ...rest] = isCuredByOtherModel(group.code) && !parts.some((one) => one.named_in)
    ? [t("problems.by-client"), first, ...others] : [first, ...others];
  return [h("div", { class: "cure" }, h("p", { class: "grow" }, message
    ? [t("problems.said"), " ", h("q", {}, shorten(message, MAX_QUOTE_LENGTH))]
    : [h("strong", {}, t("error.cures")), " ", linkSettings(best)]), links),
  messageHasCure(group) ? null
    : message ? h("p", { class: "small quiet" }, t("error.cures"), " ", linkSettings(best, ...rest))
      : rest.length ? h("p", { class: "small" }, linkSettings(...rest)) : null];
}

// Return whether a message has byok's own advice in it, as those of its checks have.
const messageHasCure = ({ message, requests }) => message && !requests;

function problemDetails({ code, ending, causes = [], cures = [], examples, parts, ...group }) {
  return [
    messageHasCure(group) ? [h("p", { class: "quiet" }, t("error.cures")),
      h("ul", {}, cures.map((cure) => h("li", {}, withSettingLinks(cure, parts[0].upstream))))] : null,
    causes.length ? [h("p", { class: "quiet" }, t("error.causes")), sentenceList(causes)] : null,
    code ? h("p", { class: "row tight small quiet" }, t("problems.code"), h("code", {}, code),
      copyButton(code)) : null,
    examples.length ? table(t("pair", { name: t("problems.latest"), value: code || ending }), [
      ...Object.values(requestColumns("failed")), idColumn()], examples)
      : null];
}

const idColumn = () => ({ title: t("request.id"),
  cell: ({ request_id: id }) => h("span", { class: "mono names" }, id) });

function modelSection(answer) {
  const rows = [...answer.models].sort((one, other) => mendedShare(other) - mendedShare(one));
  return section(t("problems.by-model"),
    h("p", { class: "quiet" }, t("problems.repairs.why")),
    table(t("problems.by-model"), modelColumns(), rows, { empty: t("problems.no-repairs") }),
    rows.length ? h("details", { "data-key": "words" },
      h("summary", {}, t("problems.words")), mendExplanations()) : null);
}

const mendedShare = (row) => (row.answers ? row.mended / row.answers : 0);

function modelColumns() {
  const count = (name) => ({ title: t(`problems.${name}`), numeric: true,
    cell: (row) => number(row[name]) });
  return [
    { title: t("request.model"), lead: true,
      cell: (row) => breakable(row.model || t("timeline.no-model")) },
    count("answers"),
    { title: t("problems.mended"), numeric: true,
      cell: (row) => (row.answers
        ? `${number(row.mended)} (${percent(mendedShare(row))})` : number(row.mended)) },
    ...MENDS.map(count),
  ];
}

function mendExplanations() {
  return h("dl", { class: "words" }, MENDS.map((name) =>
    h("div", {}, h("dt", {}, t(`problems.${name}`)), h("dd", {}, t(`problems.${name}.what`), " ",
      t(`problems.${name}.do`)))));
}

function mendedSection(answer) {
  const { time, model, conversation } = requestColumns("mended");
  const columns = [time, model, { title: t("problems.what"), cell: mendBadges }, conversation];
  const title = t("problems.last-mended");
  const others = answer.mended.slice(FIRST_MENDED);
  return section(title, table(title, columns, answer.mended.slice(0, FIRST_MENDED)),
    others.length ? h("details", { "data-key": "mended" },
      h("summary", {}, t("problems.more", { count: number(others.length) })),
      table(t("problems.more", { count: number(others.length) }), columns, others)) : null);
}
