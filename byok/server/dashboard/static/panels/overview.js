// The state at a glance: the daemon, its upstreams, keys, models and last requests. Each
// block loads by itself, so that a slow one holds up nothing else.

import { call, onEnd } from "../api.js";
import {
  announce, badge, breakable, errorBox, facts, h, replace, table, toolSection,
} from "../dom.js";
import { statusFacts } from "../feature-status.js";
import { duration, number, time } from "../format.js";
import { follow, renderAgain } from "../refresh.js";
import { t } from "../texts.js";
import { modelsTable } from "./models-table.js";
import { requestsTable } from "./requests-table.js";

const ASK_AGAIN = 2000; // ms, while an upstream is being asked
let keysAnswer = null; // a keyring may open a dialog, so it is asked once a page
addEventListener("byok-keys", ({ detail }) => { keysAnswer = detail; }); // of the settings
onEnd(() => { keysAnswer = null; });

export async function open(root, rest, signal) {
  const models = block("overview.models", modelsBlock, signal);
  const upstreams = (...parts) => upstreamsBlock(...parts, models.load);
  const blocks = [
    block("overview.daemon", stateBlock, signal),
    block("overview.upstreams", upstreams, signal),
    block("overview.keys", keysBlock, signal),
    block("overview.requests", requestsBlock, signal),
    models,
  ];
  replace(root, blocks.map(({ element }) => element));
  await Promise.all(blocks.map(({ load }) => load()));
}

// Return a section that loads itself: `make(body, signal, tools)` fills its body.
function block(title, make, signal) {
  const body = h("div", { "aria-busy": "true" }, h("p", { class: "quiet" }, t("overview.loading")));
  const tools = h("div", { class: "row" });
  const element = toolSection(t(title), tools, body);
  const load = async () => {
    try {
      await make(body, signal, tools);
    } catch (error) {
      if (!signal.aborted) replace(body, errorBox(error));
    }
    body.removeAttribute("aria-busy");
  };
  return { element, load };
}

// Show it, and again when requests end.
async function keepShown(show, body, signal) {
  const again = () => show({ background: true }).catch((error) => {
    if (!signal.aborted) replace(body, errorBox(error));
  });
  follow(again, signal);
  await show();
}

// Return a button that does one thing at a time; it stays where the focus is.
function again(text, action) {
  let busy = false;
  const click = async () => {
    if (busy) return;
    busy = true;
    button.setAttribute("aria-disabled", "true");
    try {
      await action();
    } finally {
      busy = false;
      button.removeAttribute("aria-disabled");
    }
  };
  const button = h("button", { on: { click } }, t(text));
  return button;
}

function stateBlock(body, signal) {
  return keepShown(async (options) => {
    const state = await call("state", {}, { signal, ...options });
    renderAgain(body, () => replace(body, stateParts(state)));
  }, body, signal);
}

function stateParts({ settings, ...state }) {
  return [
    settings.error ? h("div", { class: "error" }, h("p", {}, t("overview.settings-error")),
      h("p", {}, settings.error)) : null,
    settings.restart.length ? h("p", { class: "note" }, badge("warn", t("overview.restart")), " ",
      t("overview.restart-what", { names: settings.restart.join(", ") })) : null,
    facts([
      [t("overview.version"), state.version],
      [t("overview.address"), h("code", {}, location.origin)],
      [t("overview.since"), t("overview.since-value",
        { time: time(state.since), uptime: duration(Math.round(state.seconds)) })],
      [t("overview.process"), String(state.pid)],
      [t("overview.default"), h("code", {}, breakable(state.model))],
      [t("overview.reason"), state.reason],
      [t("overview.settings"), h("code", {}, settings.file)],
      [t("overview.official"), officialText(state.official)],
      ...statusFacts(state.features),
    ])];
}

function officialText(official) {
  if (!official.base_url) return t("overview.official-none");
  const groups = Object.entries(official.groups).filter(([, place]) => place === "official");
  const names = groups.map(([name]) => name).join(", ");
  const troubles = Object.entries(official.troubles);
  return [h("code", {}, official.base_url), " ",
    names ? t("overview.official-groups", { names }) : t("overview.official-unused"),
    troubles.map(([what, why]) => h("p", { class: "trouble" }, badge("bad", what), " ", why))];
}

async function upstreamsBlock(body, signal, tools, onModels) {
  const pulse = { timer: 0, models: -1 };
  const show = async (options = {}) => {
    clearTimeout(pulse.timer);
    const { upstreams } = await call("upstreams", options.body ?? {}, { signal, ...options });
    renderAgain(body, () => replace(body, demoNote(upstreams), upstreamsTable(upstreams)));
    const models = upstreams.reduce((sum, one) => sum + one.models, 0);
    if (pulse.models >= 0 && models !== pulse.models) onModels();
    pulse.models = models;
    if (!upstreams.some((one) => one.asking)) {
      if (options.told) announce(t("overview.asked-all"));
      return;
    }
    const look = () => {
      if (document.hidden) return void (pulse.timer = setTimeout(look, ASK_AGAIN));
      show({ background: true, told: true }).catch((error) => {
        if (!signal.aborted) replace(body, errorBox(error));
      });
    };
    pulse.timer = setTimeout(look, ASK_AGAIN);
  };
  signal.addEventListener("abort", () => clearTimeout(pulse.timer));
  replace(tools, again("overview.ask-again", () => show({ body: { anew: true } })));
  await keepShown(show, body, signal);
}

// Who has only the demo is told how to have a model.
function demoNote([first]) {
  return first?.type !== "demo" ? null : h("p", { class: "note" }, t("overview.demo"), " ",
    h("a", { href: "#/settings" }, t("settings.title")));
}

function upstreamsTable(upstreams) {
  return table(t("overview.upstreams"), [
    { title: t("overview.name"), cell: (one) => [h("strong", {}, one.name),
      one === upstreams[0] ? [" ", badge("quiet", t("overview.first"))] : null] },
    { title: t("overview.state"), cell: upstreamState },
    { title: t("overview.models"), cell: (one) => number(one.models), numeric: true },
    { title: t("overview.address"), cell: (one) =>
      one.base_url ? h("code", {}, one.base_url) : t("overview.inside") },
    { title: t("overview.api"), cell: apiText },
  ], upstreams);
}

const apiText = ({ type, dialect, base_url: url }) =>
  url && type !== dialect ? `${type} · ${dialect}` : type;

function upstreamState({ asking, age, failure, rest }) {
  const when = age === null ? "" : t("overview.asked", { time: duration(Math.round(age)) });
  const resting = rest > 0
    ? h("p", {}, badge("warn", t("overview.rest", { time: duration(Math.ceil(rest)) }))) : null;
  if (asking) return [badge("quiet", t("overview.asking")), resting];
  if (failure) return [badge("bad", t("overview.fails")), " ", failure, " ", quiet(when), resting];
  if (age === null) return [badge("quiet", t("overview.not-asked")), resting];
  return [badge("good", t("overview.answers")), " ", quiet(when), resting];
}

const quiet = (text) => h("span", { class: "quiet" }, text);

async function keysBlock(body, signal, tools) {
  const show = async (anew) => {
    if (anew) replace(body, h("p", { class: "quiet" }, t("overview.keys-looking")));
    if (anew || keysAnswer === null) keysAnswer = await call("keys", {}, { signal });
    replace(body, keysTable(keysAnswer));
    if (anew) announce(t("overview.keys-looked"));
  };
  replace(body, h("p", { class: "quiet" }, t("overview.keys-looking")));
  replace(tools, again("overview.look-again", async () => {
    try {
      await show(true);
    } catch (error) {
      if (!signal.aborted) replace(body, errorBox(error));
    }
  }));
  await show(false);
}

function keysTable({ keys, unread }) {
  const missing = (row) => row.source === "none";
  return [
    unread.map((why) => h("p", { class: "note" }, badge("warn", t("overview.unread")), " ", why)),
    table(t("overview.keys"), [
      { title: t("overview.name"), cell: (row) => h("strong", {}, row.upstream) },
      { title: t("overview.key"), cell: (row) => (row.error
        ? badge("bad", t("overview.unusable")) : row.fingerprint
          ? badge("good", t("overview.set")) : badge("warn", t("overview.not-set"))) },
      { title: t("overview.source"), cell: (row) => row.error || (missing(row)
        ? [t("overview.key-cure"), " ", h("code", {}, `byok keys set ${row.upstream}`)]
        : row.source) },
      { title: t("overview.fingerprint"), cell: (row) =>
        (row.fingerprint ? h("code", {}, row.fingerprint) : "–") },
    ], keys, { empty: t("overview.keys-none") })];
}

async function modelsBlock(body, signal) {
  replace(body, modelsTable(await call("catalog", {}, { signal })));
}

function requestsBlock(body, signal, tools) {
  replace(tools, h("a", { href: "#/live" }, t("overview.all-requests")));
  return keepShown(async (options) => {
    const { requests } = await call("requests", { count: 10 }, { signal, ...options });
    renderAgain(body, () => replace(body, requestsTable(requests)));
  }, body, signal);
}
