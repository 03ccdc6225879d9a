// The first panel: is all well, and what happens now? A sentence with what to do, tiles with
// today's sums, running requests, then blocks for the parts of byok. Each block loads by itself, so
// that a slow one does not delay the others.

import { call, onSessionEnd } from "../api.js";
import { upstreamCures } from "../cures.js";
import {
  ago, announce, attempt, badge, bar, breakable, button, commandBox, dot, factList, flushSection, h,
  healthCard, joinWithDots, replace, sparkline, tile, withCode,
} from "../dom.js";
import { meterText, statusFacts } from "../feature-status.js";
import { amountSpent, clock, dollars, duration, number } from "../format.js";
import { icon } from "../icons.js";
import { onRequests, onState } from "../live.js";
import { createEntry, go, openChoice } from "../palette.js";
import { createPoller, followRequests, keepUpdated, renderAgain } from "../refresh.js";
import {
  barLegend, clientName, conversationLink, costCell, costOf, kindOf, modelOf, nameDetails,
  problemAddress, shorten, speedText, unpricedText, withSettingLinks,
} from "../requests.js";
import { joinList, t, textOr } from "../texts.js";
import { createUpstreamLook, upstreamState } from "../upstream-state.js";
import { editorsBlock } from "./editors.js";
import { bytesText, elapsed, FULL_BAR_SECONDS, sharesOf, stateOf } from "./live-table.js";
import { canStore, keyActionText, keyState, storeFault, STORES } from "./settings/keys.js";
import { openRestart, settingNames } from "./settings/restart.js";

const TICK_MS = 250;
const DEMO_UPSTREAM = "byok-demo"; // the upstream of `byok demo`
const NEAR_CAP = 0.8; // the used share of a cap from which on it is reported
const MAX_RUNNING = 4;
const MAX_CONVERSATIONS = 6;
let keysAnswer = null; // loaded once a page, because a keyring may open a dialog
addEventListener("byok-keys", ({ detail }) => { keysAnswer = detail; }); // the settings loaded it
addEventListener("byok-language", () => { keysAnswer = null; });
onSessionEnd(() => { keysAnswer = null; });

export async function open(root, parts, signal) {
  const health = new Health(signal);
  const tiles = h("div");
  const state = createBlock("settings.group.daemon",
    (...parts) => stateBlock(...parts, signal, health), signal);
  const upstreams = createBlock("overview.upstreams",
    (body, tools) => upstreamsBlock(body, tools, signal, health), signal);
  const keys = createBlock("overview.keys",
    (body, tools) => keysBlock(body, tools, signal), signal);
  const latest = createBlock("overview.conversations",
    (body, tools) => conversationsBlock(body, tools, signal, health), signal);
  const editors = createBlock("editors.title",
    (body) => editorsBlock(body, signal, () => health.isDemo), signal);
  replace(root, health.element, tiles,
    h("div", { class: "two" },
      h("div", { class: "stack" }, runningSection(signal), latest.element, state.element),
      h("div", { class: "stack" }, upstreams.element, editors.element, keys.element)));
  const today = attempt(tiles, signal, () => keepUpdated(async (options) => {
    const answer = await call("today", {}, { signal, ...options });
    health.update({ today: answer });
    renderAgain(tiles, createTiles(answer));
  }, tiles, signal));
  await Promise.all([today, ...[state, upstreams, keys, latest, editors].map(({ load }) => load())]);
  if (parts[0] === "editors") {
    editors.element.classList.add("sought");
    editors.element.scrollIntoView({ block: "center" });
  }
}

// The sentence that says whether all is well, and what to do. The blocks pass it their facts; it is
// shown once all of them are there.
class Health {
  constructor(signal) {
    this.facts = {};
    this.element = h("div", { class: "stack", hidden: true });
    onState((connection) => this.update({ connection }), signal);
  }

  get isDemo() {
    return this.facts.upstreams?.some(({ name }) => name === DEMO_UPSTREAM);
  }

  // Take over new facts: `connection`, `state`, `upstreams`, `today` or `isNew`.
  update(news) {
    Object.assign(this.facts, news);
    const { connection, state, upstreams, today, isNew } = this.facts;
    if (!state || !upstreams || !today || isNew === undefined) return;
    const health = connection === "restarting"
      ? { tone: "warn", headline: t("connection.restarting") }
      : connection === "lost" ? absentHealth() : judgeHealth(state, upstreams, today, isNew);
    this.element.hidden = false;
    renderAgain(this.element,
      this.isDemo ? h("p", { class: "card note" },
        h("strong", {}, t("health.samples")), " ", t("health.samples.next")) : null,
      healthCard(t("request.state"), health),
      isNew ? firstSteps(state.model, upstreams[0]) : null);
  }
}

const absentHealth = () => ({ tone: "warn", headline: t("health.away"),
  detail: t("health.away.next"), actions: commandBox("byok serve") });

// Return the steps of a new user, and which are done. The upstream of the demo does not count as a
// model.
function firstSteps(model, upstream) {
  const hasModel = upstream?.state === "answers" && upstream.type !== "demo";
  const step = (classes, count, title, how) => h("li", { class: classes },
    h("span", { class: "step", "aria-hidden": "true" }, classes === "done" ? icon("check") : count),
    h("div", {}, h("strong", {}, title, classes === "done"
      ? h("span", { class: "hidden" }, ` ${t("steps.done")}`) : null),
    h("div", { class: "quiet" }, how)));
  const link = (address, text) => h("a", { href: `#/${address}` }, t(text));
  return h("section", { class: "card flush" },
    h("div", { class: "head" }, h("h2", {}, t("steps.title"))),
    h("ol", { class: "list steps" }, step(hasModel ? "done" : "now", "1", t("steps.model"),
      hasModel ? model : link("settings/add", "settings.add")),
    step(hasModel ? "now" : "", "2", link("overview/editors", "steps.editor"), t("steps.editor.how")),
    step("", "3", t("steps.ask"), t("steps.ask.how"))));
}

const usedShare = ({ used, most }) => used / most;

// Return the state of byok as options of a health card: the worst of what is wrong.
function judgeHealth(state, upstreams, today, isNew) {
  const bad = (headline, detail, actions) => ({ tone: "bad", headline, detail, actions });
  const warn = (headline, detail, actions) => ({ tone: "warn", headline, detail, actions });
  const link = (address, text) => h("a", { class: "button", href: address }, text);
  const count = number(today.needs_you.length);
  const problemText = t("health.needs", { count });
  const problemLinks = joinWithDots(...today.needs_you.map(({ code, what }) =>
    h("a", { href: problemAddress(code) }, withCode(what))));
  const toErrors = link("#/problems", t("health.show-errors"));
  const { error, restart } = state.settings;
  if (error) {
    return bad(t("overview.settings-error"), error, link("#/settings", t("problems.do.settings")));
  }
  const failing = upstreams.filter((one) => one.state === "fails" && !one.asking);
  if (failing.length) {
    const [first] = failing;
    const names = joinList(failing.map(({ name }) => name));
    const others = upstreams.length - failing.length;
    const report = others ? warn : bad;
    const headline = t(others ? "health.some-fail" : "health.all-fail", { names });
    if (today.needs_you.some(({ code }) => code !== first.code)) {
      return report(problemText, [headline, " ", problemLinks], toErrors);
    }
    return report(headline, [
      first.what ? h("strong", {}, withCode(first.what)) : null, " ",
      first.failure || withSettingLinks(first.cures?.[0] ?? "", first.name),
      first.by_list ? [" ", t("health.by-list")] : null,
    ], [upstreamCures(first, "button primary")[0]
      ?? link(settingsAddress(first.name), t("problems.do.settings")),
    link(problemAddress(first.code), t("health.show-errors"))]);
  }
  const [cap] = [...today.caps].sort((one, other) => usedShare(other) - usedShare(one));
  if (cap && usedShare(cap) >= NEAR_CAP) {
    const [report, name] = usedShare(cap) < 1 ? [warn, "near"] : [bad, "reached"];
    return report(t(`health.cap-${name}`), meterText(cap),
      link("#/settings/find/caps", t("problems.do.cap")));
  }
  if (upstreams[0]?.type === "demo") {
    return warn(t("health.demo"), withCode(t("overview.demo")), link("#/settings/add", t("settings.add")));
  }
  if (restart.length) {
    return warn(t("health.restart"), t("overview.restart-what", { names: settingNames(restart) }),
      button(t("settings.restart.now"), "", () => openRestart()));
  }
  if (upstreams.some((one) => one.rest > 0)) {
    const names = joinList(upstreams.filter((one) => one.rest > 0).map(({ name }) => name));
    return warn(t("health.rests", { names }), t("health.rests.next"),
      link("#/problems", t("problems.title")));
  }
  if (problemLinks.length) {
    return warn(problemText, [problemLinks, h("br"), t("health.needs.next", { count })], toErrors);
  }
  const tone = "good";
  if (isNew) return { tone, headline: t("health.ready"), detail: t("health.ready.next") };
  return { tone, headline: t("health.well", { count: number(upstreams.length) }),
    detail: today.errors ? t("health.well.errors", { count: number(today.errors) })
      : t("health.well.next"),
    actions: today.errors ? toErrors : null };
}

function createTiles(today) {
  const { hours } = today;
  const moneyCap = today.caps.find((cap) => cap.in_dollars);
  return h("div", { class: "tiles" },
    tile("#/usage", t("tile.requests"), number(today.requests), "",
      today.requests ? t("tile.yesterday", { count: number(today.yesterday) })
        : t("tile.requests.none"), hourSparkline(hours.requests)),
    tile("#/usage/costliest", t("tile.cost"),
      moneyCap ? dollars(today.cost) : amountSpent(costOf(today)),
      moneyCap ? t("tile.cap", { cap: dollars(moneyCap.most) }) : "", unpricedText(today),
      [moneyCap ? bar([["", 0, Math.min(1, usedShare(moneyCap))]]) : null,
        hourSparkline(hours.cost)]),
    tile("#/problems", t("tile.errors"), number(today.errors),
      today.errors ? t("tile.errors.unit", { count: number(today.errors) }) : "",
      today.needs_you.length ? t("tile.errors.needing", { count: number(today.needs_you.length) })
        : t(today.errors ? "tile.errors.none" : "tile.errors.zero"),
      hourSparkline(hours.errors, "bad")),
    tile("#/usage/slowest", t("tile.speed"), number(today.speed), t("tile.speed.unit"),
      today.speed === null ? t("tile.speed.none") : t("tile.speed.of"),
      hourSparkline(hours.speed)));
}

// Return a sparkline of the whole day: hours to come, and unknown ones, count as 0.
function hourSparkline(values, tone = "") {
  const length = Math.max(24, values.length);
  return sparkline(Array.from({ length }, (_, hour) => values[hour] ?? 0), tone, t("tile.hours"));
}

// Return the section of running requests to models, whose bars grow with the time.
function runningSection(signal) {
  const body = h("div");
  const element = h("section", { class: "card" },
    h("div", { class: "head" }, h("h2", {}, t("running.title")),
      h("a", { href: "#/live" }, t("overview.all-requests"))), body);
  let open = [];
  const show = () => renderAgain(body, open.length
    ? [open.slice(0, MAX_RUNNING).map(runningRow),
      barLegend(t("live.scale", { time: duration(FULL_BAR_SECONDS) }))]
    : h("p", { class: "empty" }, t("running.none")));
  onRequests(({ rows }) => {
    open = [...rows.values()].filter((row) => row.outcome === "open" && row.model).reverse();
    show();
  }, signal);
  const timer = setInterval(() => {
    if (open.length && !document.hidden) show();
  }, TICK_MS);
  signal.addEventListener("abort", () => clearInterval(timer));
  show();
  return element;
}

function runningRow(row) {
  const [waitShare, answerShare] = sharesOf(row);
  return h("div", { class: "running" },
    h("div", { class: "row" }, h("a", { class: "grow", href: `#/live/${row.request_id}` },
      row.folder || clientName(row.client) || kindOf(row)), badge("info", t(`live.state.${stateOf(row)}`)),
    h("span", { class: "nowrap" }, duration(Math.round(elapsed(row))))),
    h("p", { class: "quiet small" }, joinWithDots(kindOf(row), breakable(modelOf(row)),
      row.sent ? t("live.rate", { size: bytesText(row.sent), rate: bytesText(row.rate) }) : null)),
    bar([["waiting", 0, waitShare], ["answer", waitShare, answerShare]]));
}

async function conversationsBlock(body, tools, signal, health) {
  replace(tools, h("a", { href: "#/conversations" }, t("overview.all-conversations")));
  await keepUpdated(async (options) => {
    const answer = await call("conversations", { count: MAX_CONVERSATIONS }, { signal, ...options });
    health.update({ isNew: !answer.conversations.length });
    renderAgain(body, answer.conversations.length
      ? h("ul", { class: "list" }, answer.conversations.map(conversationRow))
      : h("p", { class: "empty" }, t("overview.conversations-none")));
  }, body, signal);
}

const conversationRow = (sums) => h("li", {},
  h("div", { class: "grow" },
    conversationLink(sums),
    h("div", { class: "quiet small" }, joinWithDots(...nameDetails(sums,
      t("overview.turns", { count: number(sums.requests) }), breakable(shorten(sums.models[0] ?? "")))))),
  h("div", { class: "numeric small" }, h("div", {}, costCell(sums, Infinity)),
    h("div", { class: "quiet" }, ago(sums.last))));

// Return {element, load}: a section, and `load()`, which has `fill(body, tools)` fill its body and the
// tools beside its heading, and shows an error.
function createBlock(title, fill, signal) {
  const body = h("div", { "aria-busy": "true" }, h("p", { class: "empty" }, t("overview.loading")));
  const tools = h("div", { class: "row" });
  const element = flushSection(t(title), tools, body);
  const load = async () => {
    await attempt(body, signal, () => fill(body, tools));
    body.removeAttribute("aria-busy");
  };
  return { element, load };
}

function stateBlock(body, tools, signal, health) {
  replace(tools, button(t("settings.restart.do"), "little", () => openRestart()));
  const pollSoon = createPoller(signal);
  const show = async (options) => {
    const state = await call("state", {}, { signal, ...options });
    pollSoon(state.settings.error && (() => attempt(body, signal, () => show({ background: true }))));
    health.update({ state });
    renderAgain(document.getElementById("tools"),
      h("span", { class: "quiet small" }, t("overview.default"), " ",
        h("code", {}, breakable(state.model)), " ",
        h("a", { href: "#/settings/choose/routing.default" }, t("settings.change-it"))),
      badge("quiet", t("overview.version-is", { version: state.version })));
    renderAgain(body, factList([
      [t("editors.address"), h("code", {}, breakable(location.origin))],
      [t("overview.since"), t("overview.since-value",
        { time: clock(state.since), uptime: duration(Math.round(state.seconds)) })],
      [t("overview.process"), String(state.pid)],
      [t("overview.reason"), state.reason],
      [t("overview.settings"), h("code", {}, breakable(state.settings.file))],
      [t("settings.group.official"), officialText(state.official)],
      ...statusFacts(state.features),
    ]));
  };
  return keepUpdated(show, body, signal);
}

function officialText(official) {
  if (!official.base_url) return t("overview.official-none");
  const groups = Object.entries(official.groups).filter(([, route]) => route === "official");
  const wordOf = (name) => textOr(`official.${name}`, name);
  const names = joinList(groups.map(([name]) => wordOf(name)));
  const troubles = Object.entries(official.troubles);
  return [h("code", {}, official.base_url), " ",
    names ? t("overview.official-groups", { names }) : t("overview.official-unused"),
    troubles.map(([feature, reason]) =>
      h("p", { class: "trouble" }, badge("bad", wordOf(feature)), " ", reason))];
}

async function upstreamsBlock(body, tools, signal, health) {
  const loadUpstreams = createUpstreamLook((upstreams) => {
    health.update({ upstreams });
    renderAgain(body, h("ul", { class: "list" },
      upstreams.map((upstream) => upstreamRow(upstream, upstreams[0]))));
  }, body, signal);
  addEventListener("byok-upstreams", () => announce(t("overview.asked-all")), { signal });
  replace(tools, button(t("overview.ask-again"), "little", () => loadUpstreams({ body: { anew: true } })),
    h("a", { class: "button little", href: "#/settings/add" }, icon("plus"), t("settings.add")));
  await keepUpdated(loadUpstreams, body, signal);
}

function upstreamRow(upstream, first) {
  const { tone, state } = upstreamState(upstream);
  const { name, type, base_url: address, today: { requests, speed } } = upstream;
  return h("li", {}, dot(tone), h("div", { class: "grow" },
    h("div", { class: "row tight" }, settingsLink(name),
      type === name ? null : h("span", { class: "tag" }, textOr(`type.${type}`, type)),
      upstream === first ? h("span", { class: "tag" }, t("overview.first")) : null),
    h("div", { class: "small quiet" }, tone === "bad" ? state : joinWithDots(state,
      t("overview.model-count", { count: number(upstream.models) }),
      speed === null ? null : speedText(speed),
      address ? breakable(address) : t("overview.inside"))),
    tone === "bad" ? upstreamCures(upstream) : null),
  requests ? h("span", { class: "numeric small" }, costCell(upstream.today, Infinity)) : null);
}

// Return the name of an upstream as a link to its settings and its key.
const settingsLink = (name) => h("a", { class: "names", href: settingsAddress(name) }, name);

const settingsAddress = (name) => `#/settings/find/${encodeURIComponent(name)}.`;

async function keysBlock(body, tools, signal) {
  const show = async (isAsked) => {
    if (isAsked) replace(body, h("p", { class: "quiet" }, t("overview.keys-looking")));
    if (isAsked || keysAnswer === null) keysAnswer = await call("keys", {}, { signal });
    replace(body, keyList(keysAnswer));
    if (isAsked) announce(t("overview.keys-looked"));
  };
  replace(body, h("p", { class: "quiet" }, t("overview.keys-looking")));
  replace(tools,
    button(t("overview.look-again"), "little", () => attempt(body, signal, () => show(true))),
    button([icon("plus"), t("overview.add-key")], "little", () => attempt(body, signal, async () =>
      addKey((keysAnswer ?? await call("keys", {}, { signal })).keys))));
  followRequests(() => keysAnswer ?? attempt(body, signal, () => show(false)), signal);
  await show(false);
}

// Lead to the only key that is missing. Without one, let the user choose a key, or add an upstream
// with its key.
function addKey(keys) {
  const missing = keys.filter((key) => !key.fingerprint && !key.local);
  if (missing.length === 1) return go(keyAddress(missing[0]));
  const entries = keys.filter(canStore).map((key) => createEntry(keyActionText(key), key.upstream, "key",
    keyAddress(key)));
  if (!entries.length) return go("#/settings/add");
  const addition = createEntry(t("overview.add-key.other"), t("settings.add"), "plus", "#/settings/add");
  openChoice(t("overview.add-key.which"), [...entries, addition], () => addition);
}

const keyAddress = (key) => `#/settings/key/${encodeURIComponent(key.upstream)}`;

function keyList({ keys, ...faults }) {
  if (!keys.length) return h("p", { class: "empty" }, t("overview.keys-none"));
  return [STORES.filter((store) => faults[store]).map((store) => storeFault(store, faults)),
    h("ul", { class: "list" }, keys.map(keyRow))];
}

const keyRow = (key) => h("li", {},
  h("div", { class: "grow" }, settingsLink(key.upstream), h("div", {}, keyState(key))),
  h("a", { class: "button little", href: keyAddress(key) }, keyActionText(key)));
