// The first panel: is all well, and what happens now? A sentence and what to do, tiles with
// today's sums, what runs, then the parts. Each block loads by itself, so that a slow one holds up
// nothing else.

import { call, onEnd } from "../api.js";
import { upstreamCures } from "../cures.js";
import {
  ago, announce, attempt, badge, bar, breakable, button, command, dot, dots, facts, flushSection, h,
  healthCard, replace, showTools, spark, tile, withCode,
} from "../dom.js";
import { meterText, statusFacts } from "../feature-status.js";
import { clock, dollars, duration, number, spent } from "../format.js";
import { icon } from "../icons.js";
import { onRequests, onState } from "../live.js";
import { follow, keepShown, pulse, renderAgain } from "../refresh.js";
import {
  barLegend, clientOf, conversationLink, costCell, costOf, cut, kindOf, modelOf, problemOf, restOf,
  speedText, unpricedText, withSettings,
} from "../requests.js";
import { listed, t, textOr } from "../texts.js";
import { upstreamLook, upstreamState } from "../upstream-state.js";
import { editorsBlock } from "./editors.js";
import { bytes, elapsed, sharesOf, stateOf, WHOLE } from "./live-table.js";
import { keyAct, keyState, storeFault, STORES } from "./settings/keys.js";
import { namesOf, openRestart } from "./settings/restart.js";

const TICK = 250; // ms
const DEMO = "byok-demo"; // the upstream of byok demo
const NEAR = 0.8; // of a cap, from where on it is told
const MOST_RUNNING = 4;
const CONVERSATIONS = 6;
let keysAnswer = null; // a keyring may open a dialog, so it is asked once a page
addEventListener("byok-keys", ({ detail }) => { keysAnswer = detail; }); // of the settings
addEventListener("byok-language", () => { keysAnswer = null; });
onEnd(() => { keysAnswer = null; });

export async function open(root, rest, signal) {
  const health = new Health(signal);
  const tiles = h("div");
  const state = block("settings.group.daemon", (...parts) => stateBlock(...parts, health), signal);
  const upstreams = block("overview.upstreams",
    (...parts) => upstreamsBlock(...parts, health), signal);
  const keys = block("overview.keys", keysBlock, signal);
  const latest = block("overview.conversations",
    (...parts) => conversationsBlock(...parts, health), signal);
  const editors = block("editors.title",
    (...parts) => editorsBlock(...parts, () => health.isDemo), signal);
  replace(root, health.element, tiles,
    h("div", { class: "two" },
      h("div", { class: "stack" }, runningSection(signal), latest.element, state.element),
      h("div", { class: "stack" }, upstreams.element, editors.element, keys.element)));
  const today = attempt(tiles, signal, () => keepShown(async (options) => {
    const told = await call("today", {}, { signal, ...options });
    health.take({ today: told });
    renderAgain(tiles, () => replace(tiles, tilesOf(told)));
  }, tiles, signal));
  await Promise.all([today, ...[state, upstreams, keys, latest, editors].map(({ load }) => load())]);
  if (rest[0] === "editors") {
    editors.element.classList.add("sought");
    editors.element.scrollIntoView({ block: "center" });
  }
}

// One sentence that says whether all is well, and what to do, of what is known so far.
class Health {
  constructor(signal) {
    this.known = {};
    this.element = h("div", { class: "stack", hidden: true });
    onState((connection) => this.take({ connection }), signal);
  }

  get isDemo() {
    return this.known.upstreams?.some(({ name }) => name === DEMO);
  }

  take(known) {
    Object.assign(this.known, known);
    const { connection, state, upstreams, today, isNew } = this.known;
    if (!state || !upstreams || !today || isNew === undefined) return;
    const health = connection === "restarting" ? { tone: "warn", say: t("connection.restarting") }
      : connection === "lost" ? AWAY() : judge(state, upstreams, today, isNew);
    this.element.hidden = false;
    renderAgain(this.element, () => replace(this.element,
      this.isDemo ? h("p", { class: "card note" },
        h("strong", {}, t("health.samples")), " ", t("health.samples.next")) : null,
      healthCard(t("request.state"), health),
      isNew ? firstSteps(state.model, upstreams[0]) : null));
  }
}

const AWAY = () => ({ tone: "warn", say: t("health.away"), next: t("health.away.next"),
  act: command("byok serve") });

// What a newcomer does, and what of it is done; the demo is no model.
function firstSteps(model, upstream) {
  const answers = upstream?.state === "answers" && upstream.type !== "demo";
  const step = (kind, count, title, how) => h("li", { class: kind },
    h("span", { class: "step", "aria-hidden": "true" }, kind === "done" ? icon("check") : count),
    h("div", {}, h("strong", {}, title, kind === "done"
      ? h("span", { class: "hidden" }, ` ${t("steps.done")}`) : null),
    h("div", { class: "quiet" }, how)));
  const link = (address, text) => h("a", { href: `#/${address}` }, t(text));
  return h("section", { class: "card flush" },
    h("div", { class: "head" }, h("h2", {}, t("steps.title"))),
    h("ol", { class: "list steps" }, step(answers ? "done" : "now", "1", t("steps.model"),
      answers ? model : link("settings/add", "settings.add")),
    step(answers ? "now" : "", "2", link("overview/editors", "steps.editor"), t("steps.editor.how")),
    step("", "3", t("steps.ask"), t("steps.ask.how"))));
}

const partOf = ({ used, most }) => used / most;

// The worst comes first.
function judge(state, upstreams, today, isNew) {
  const bad = (say, next, act) => ({ tone: "bad", say, next, act });
  const warn = (say, next, act) => ({ tone: "warn", say, next, act });
  const link = (address, text) => h("a", { class: "button", href: address }, text);
  const count = number(today.needs_you.length);
  const needs = t("health.needs", { count });
  const needed = dots(...today.needs_you.map(({ code, what }) =>
    h("a", { href: problemOf(code) }, withCode(what))));
  const toErrors = link("#/problems", t("health.show-errors"));
  const { error, restart } = state.settings;
  if (error) {
    return bad(t("overview.settings-error"), error, link("#/settings", t("problems.do.settings")));
  }
  const failing = upstreams.filter((one) => one.state === "fails" && !one.asking);
  if (failing.length) {
    const [first] = failing;
    const names = listed(failing.map(({ name }) => name));
    const others = upstreams.length - failing.length;
    const tell = others ? warn : bad;
    const say = t(others ? "health.some-fail" : "health.all-fail", { names });
    if (today.needs_you.some(({ code }) => code !== first.code)) {
      return tell(needs, [say, " ", needed], toErrors);
    }
    return tell(say, [
      first.what ? h("strong", {}, withCode(first.what)) : null, " ",
      first.failure || withSettings(first.cures?.[0] ?? "", first.name),
      first.by_list ? [" ", t("health.by-list")] : null,
    ], [upstreamCures(first, "button primary")[0]
      ?? link(settingsOf(first.name), t("problems.do.settings")),
    link(problemOf(first.code), t("health.show-errors"))]);
  }
  const [cap] = [...today.caps].sort((one, other) => partOf(other) - partOf(one));
  if (cap && partOf(cap) >= NEAR) {
    const [tell, name] = partOf(cap) < 1 ? [warn, "near"] : [bad, "reached"];
    return tell(t(`health.cap-${name}`), meterText(cap),
      link("#/settings/find/caps", t("problems.do.cap")));
  }
  if (upstreams[0]?.type === "demo") {
    return warn(t("health.demo"), t("overview.demo"), link("#/settings/add", t("settings.add")));
  }
  if (restart.length) {
    return warn(t("health.restart"), t("overview.restart-what", { names: namesOf(restart) }),
      button(t("settings.restart.now"), "", () => openRestart()));
  }
  if (upstreams.some((one) => one.rest > 0)) {
    const names = listed(upstreams.filter((one) => one.rest > 0).map(({ name }) => name));
    return warn(t("health.rests", { names }), t("health.rests.next"),
      link("#/problems", t("problems.title")));
  }
  if (needed.length) return warn(needs, [needed, h("br"), t("health.needs.next", { count })], toErrors);
  const tone = "good";
  if (isNew) return { tone, say: t("health.ready"), next: t("health.ready.next") };
  return { tone, say: t("health.well", { count: number(upstreams.length) }),
    next: today.errors ? t("health.well.errors", { count: number(today.errors) })
      : t("health.well.next"),
    act: today.errors ? toErrors : null };
}

function tilesOf(today) {
  const { hours } = today;
  const money = today.caps.find((cap) => cap.in_dollars);
  return h("div", { class: "tiles" },
    tile("#/usage", t("tile.requests"), number(today.requests), "",
      today.requests ? t("tile.yesterday", { count: number(today.yesterday) })
        : t("tile.requests.none"), sparkOf(hours.requests)),
    tile("#/usage/costliest", t("tile.cost"), money ? dollars(today.cost) : spent(costOf(today)),
      money ? t("tile.cap", { cap: dollars(money.most) }) : "", unpricedText(today),
      [money ? bar([["", 0, Math.min(1, partOf(money))]]) : null,
        sparkOf(hours.cost)]),
    tile("#/problems", t("tile.errors"), number(today.errors),
      today.errors ? t("tile.errors.unit", { count: number(today.errors) }) : "",
      today.needs_you.length ? t("tile.errors.needing", { count: number(today.needs_you.length) })
        : t(today.errors ? "tile.errors.none" : "tile.errors.zero"),
      sparkOf(hours.errors, "bad")),
    tile("#/usage/slowest", t("tile.speed"), number(today.speed), t("tile.speed.unit"),
      today.speed === null ? t("tile.speed.none") : t("tile.speed.of"),
      sparkOf(hours.speed)));
}

// Also the hours that are to come, and those of which nothing is known.
const sparkOf = (values, tone = "") => spark(Array.from({ length: Math.max(24, values.length) },
  (_, hour) => values[hour] ?? 0), tone, t("tile.hours"));

// What models do just now; the bars grow while nobody tells anything.
function runningSection(signal) {
  const body = h("div");
  const element = h("section", { class: "card" },
    h("div", { class: "head" }, h("h2", {}, t("running.title")),
      h("a", { href: "#/live" }, t("overview.all-requests"))), body);
  let open = [];
  const show = () => renderAgain(body, () => replace(body, open.length
    ? [open.slice(0, MOST_RUNNING).map(runningRow), barLegend(t("live.scale", { time: duration(WHOLE) }))]
    : h("p", { class: "empty" }, t("running.none"))));
  onRequests(({ rows }) => {
    open = [...rows.values()].filter((row) => row.outcome === "open" && row.model).reverse();
    show();
  }, signal);
  const timer = setInterval(() => {
    if (open.length && !document.hidden) show();
  }, TICK);
  signal.addEventListener("abort", () => clearInterval(timer));
  show();
  return element;
}

function runningRow(row) {
  const [waited, answered] = sharesOf(row);
  return h("div", { class: "running" },
    h("div", { class: "row" }, h("a", { class: "grow", href: `#/live/${row.request_id}` },
      row.folder || clientOf(row.client) || kindOf(row)), badge("info", t(`live.state.${stateOf(row)}`)),
    h("span", { class: "nowrap" }, duration(Math.round(elapsed(row))))),
    h("p", { class: "quiet small" }, dots(kindOf(row), breakable(modelOf(row)),
      row.sent ? t("live.rate", { size: bytes(row.sent), rate: bytes(row.rate) }) : null)),
    bar([["waiting", 0, waited], ["answer", waited, answered]]));
}

async function conversationsBlock(body, signal, tools, health) {
  replace(tools, h("a", { href: "#/conversations" }, t("overview.all-conversations")));
  await keepShown(async (options) => {
    const told = await call("conversations", { count: CONVERSATIONS }, { signal, ...options });
    health.take({ isNew: !told.conversations.length });
    renderAgain(body, () => replace(body, told.conversations.length
      ? h("ul", { class: "list" }, told.conversations.map(conversationRow))
      : h("p", { class: "empty" }, t("overview.conversations-none"))));
  }, body, signal);
}

const conversationRow = (sums) => h("li", {},
  h("div", { class: "grow" },
    conversationLink(sums),
    h("div", { class: "quiet small" }, dots(...restOf(sums,
      t("overview.turns", { count: number(sums.requests) }), breakable(cut(sums.models[0] ?? "")))))),
  h("div", { class: "numeric small" }, h("div", {}, costCell(sums, Infinity)),
    h("div", { class: "quiet" }, ago(sums.last))));

// Return a section that loads itself: `make(body, signal, tools)` fills its body.
function block(title, make, signal) {
  const body = h("div", { "aria-busy": "true" }, h("p", { class: "empty" }, t("overview.loading")));
  const tools = h("div", { class: "row" });
  const element = flushSection(t(title), tools, body);
  const load = async () => {
    await attempt(body, signal, () => make(body, signal, tools));
    body.removeAttribute("aria-busy");
  };
  return { element, load };
}

function stateBlock(body, signal, tools, health) {
  const soon = pulse(signal);
  const show = async (options) => {
    const state = await call("state", {}, { signal, ...options });
    soon(state.settings.error && (() => attempt(body, signal, () => show({ background: true }))));
    health.take({ state });
    renderAgain(document.getElementById("tools"), () => showTools(
      h("span", { class: "quiet small" }, t("overview.default"), " ",
        h("code", {}, breakable(state.model)), " ",
        h("a", { href: "#/settings/choose/routing.default" }, t("settings.change-it"))),
      badge("quiet", t("overview.version-is", { version: state.version }))));
    renderAgain(body, () => replace(body, facts([
      [t("editors.address"), h("code", {}, breakable(location.origin))],
      [t("overview.since"), t("overview.since-value",
        { time: clock(state.since), uptime: duration(Math.round(state.seconds)) })],
      [t("overview.process"), String(state.pid)],
      [t("overview.reason"), state.reason],
      [t("overview.settings"), h("code", {}, breakable(state.settings.file))],
      [t("settings.group.official"), officialText(state.official)],
      ...statusFacts(state.features),
    ])));
  };
  return keepShown(show, body, signal);
}

function officialText(official) {
  if (!official.base_url) return t("overview.official-none");
  const groups = Object.entries(official.groups).filter(([, place]) => place === "official");
  const wordOf = (name) => textOr(`official.${name}`, name);
  const names = listed(groups.map(([name]) => wordOf(name)));
  const troubles = Object.entries(official.troubles);
  return [h("code", {}, official.base_url), " ",
    names ? t("overview.official-groups", { names }) : t("overview.official-unused"),
    troubles.map(([what, why]) => h("p", { class: "trouble" }, badge("bad", wordOf(what)), " ", why))];
}

async function upstreamsBlock(body, signal, tools, health) {
  const look = upstreamLook((upstreams) => {
    health.take({ upstreams });
    renderAgain(body, () => replace(body,
      h("ul", { class: "list" }, upstreams.map((one) => upstreamRow(one, upstreams[0])))));
  }, body, signal);
  addEventListener("byok-upstreams", () => announce(t("overview.asked-all")), { signal });
  replace(tools, button(t("overview.ask-again"), "little", () => look({ body: { anew: true } })),
    adding("settings/add", "settings.add"));
  await keepShown(look, body, signal);
}

function upstreamRow(one, first) {
  const { tone, state } = upstreamState(one);
  const { requests, speed } = one.today;
  return h("li", {}, dot(tone), h("div", { class: "grow" },
    h("div", { class: "row tight" }, settingsLink(one.name),
      one.type === one.name ? null : h("span", { class: "tag" }, textOr(`type.${one.type}`, one.type)),
      one === first ? h("span", { class: "tag" }, t("overview.first")) : null),
    h("div", { class: "small quiet" }, tone === "bad" ? state : dots(state,
      t("overview.model-count", { count: number(one.models) }),
      speed === null ? null : speedText(speed),
      one.base_url ? breakable(one.base_url) : t("overview.inside"))),
    tone === "bad" ? upstreamCures(one) : null),
  requests ? h("span", { class: "numeric small" }, costCell(one.today, Infinity)) : null);
}

// Return the link to where something is added.
const adding = (address, does) =>
  h("a", { class: "button little", href: `#/${address}` }, icon("plus"), t(does));

// Return the name of an upstream, which leads to its settings and its key.
const settingsLink = (name) => h("a", { class: "names", href: settingsOf(name) }, name);

const settingsOf = (name) => `#/settings/find/${encodeURIComponent(name)}.`;

async function keysBlock(body, signal, tools) {
  const show = async (anew) => {
    if (anew) replace(body, h("p", { class: "quiet" }, t("overview.keys-looking")));
    if (anew || keysAnswer === null) keysAnswer = await call("keys", {}, { signal });
    replace(body, keyList(keysAnswer));
    if (anew) announce(t("overview.keys-looked"));
  };
  replace(body, h("p", { class: "quiet" }, t("overview.keys-looking")));
  replace(tools, button(t("overview.look-again"), "little", () => attempt(body, signal, () => show(true))),
    adding("settings/add", "overview.add-key"));
  follow(() => keysAnswer ?? attempt(body, signal, () => show(false)), signal);
  await show(false);
}

function keyList({ keys, ...faults }) {
  if (!keys.length) return h("p", { class: "empty" }, t("overview.keys-none"));
  return [STORES.filter((store) => faults[store]).map((store) => storeFault(store, faults)),
    h("ul", { class: "list" }, keys.map(keyRow))];
}

const keyRow = (key) => h("li", {},
  h("div", { class: "grow" }, settingsLink(key.upstream), h("div", {}, keyState(key))),
  h("a", { class: "button little", href: `#/settings/key/${encodeURIComponent(key.upstream)}` },
    keyAct(key)));
