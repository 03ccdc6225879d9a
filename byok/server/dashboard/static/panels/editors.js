// Which editors and programs are pointed at byok, and pointing them there. The lines that
// change are shown before anything is written.

import { call } from "../api.js";
import {
  ago, announce, attempt, badge, button, command, dots, errorBox, flushSection, h, openDialog,
  replace,
} from "../dom.js";
import { follow, renderAgain } from "../refresh.js";
import { t, textOr } from "../texts.js";

// Those that people ask for first; the others are behind a button.
const FIRST = ["vscode", "jetbrains", "cli", "sdk"];
const nameOf = ({ client, name }) => textOr(`editors.name.${client}`, name);
const TONES = { connected: "good", old: "warn" };
const ACTS = { connected: ["undo"], old: ["again", "undo"] };
const ELSEWHERE = new Set(["off", "missing"]); // who asks all the same has other settings
const titleOf = (act, one) => `${t(`editors.${act}`)}: ${nameOf(one)}`;

// Return the section; it is shown again when requests end, or a client was changed.
export function editorsSection(signal) {
  const body = h("div");
  let all = false;
  const load = async (background) => {
    const told = await call("clients", {}, { signal, background });
    const shown = told.clients.filter((one) => all || FIRST.includes(one.client)
      || one.state === "connected" || one.state === "old" || one.last);
    renderAgain(body, () => replace(body,
      h("ul", { class: "list editors" }, shown.map((one) => row(one, told, () => load(false)))),
      shown.length < told.clients.length ? h("p", {}, button(t("editors.all"), "bare little",
        () => { all = true; load(false); })) : null));
  };
  const show = (background) => attempt(body, signal, () => load(background));
  follow(() => show(true), signal);
  show(false);
  return flushSection(t("editors.title"), [], body);
}

function row(one, told, again) {
  const acts = ACTS[one.state] ?? [one.writable ? "connect" : "how"];
  const last = one.last ? [t("editors.last"), " ", ago(one.last)] : null;
  const state = one.error || (one.state || !last ? t(`editors.state.${one.state || "by-hand"}`) : null);
  return h("li", {},
    h("div", { class: "grow" }, h("strong", {}, nameOf(one)),
      h("div", { class: `small ${TONES[one.state] ?? "quiet"}` }, 
        last && ELSEWHERE.has(one.state) ? [last, t(`editors.elsewhere.${one.state}`)] : dots(state, last))),
    acts.map((act) => button(t(`editors.${act}`), "little",
      () => openClient(act, one, told, again), { "aria-label": titleOf(act, one) })));
}

async function openClient(act, one, told, again) {
  if (act === "how") return openByHand(one, told);
  const name = act === "undo" ? "client-disconnect" : "client-connect";
  const problem = h("div");
  let plan = null;
  try {
    plan = await call(name, { client: one.client });
  } catch (error) {
    replace(problem, errorBox(error));
  }
  const write = async (close, pressed) => {
    pressed.disabled = true;
    try {
      await call(name, { client: one.client, write: true, digest: plan.digest });
      close();
      announce(t(name === "client-connect" ? "editors.written" : "editors.restored",
        { name: nameOf(one) }));
      await again();
    } catch (error) {
      replace(problem, errorBox(error));
      pressed.disabled = false;
    }
  };
  const verb = t(name === "client-connect" ? "editors.write" : "editors.disconnect");
  openDialog(titleOf(act, one), [problem, ...plan ? planParts(plan, name) : [],
    h("details", {}, h("summary", {}, t("editors.by-hand")),
      command(name === "client-connect" ? `byok connect ${one.client} --write`
        : `byok disconnect ${one.client}`))],
  (close) => [button(t("cancel"), "", close), plan?.needed
    ? button(verb, "primary", (event) => write(close, event.currentTarget)) : null]);
}

function planParts(plan, name) {
  if (!plan.needed) return [h("p", {}, badge("good", t("editors.nothing")))];
  const about = name === "client-connect" ? "editors.adds"
    : plan.removes ? "editors.removes" : "editors.restores";
  return [h("p", {}, t(about), " ", h("code", {}, plan.file)),
    h("pre", { class: "lines", tabindex: "0", role: "region", "aria-label": t("editors.lines") },
      plan.lines.map(({ mark, line, text }) => h("span", { class: LINES[mark] },
        h("span", { class: "place" }, `${line} ${mark} `), `${text}\n`)))];
}

const LINES = { "+": "line more", "-": "line less", " ": "line" };

function openByHand(one, told) {
  openDialog(titleOf("how", one), [
    h("p", {}, t("editors.values")),
    h("h3", {}, t("editors.address")), command(told.url),
    h("h3", {}, t("editors.openai")), command(told.openai_url),
    h("h3", {}, t("editors.token")), command("byok token"),
    h("h3", {}, t("editors.more")), command(`byok connect ${one.client}`),
  ]);
}
