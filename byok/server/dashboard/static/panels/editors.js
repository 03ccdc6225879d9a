// Which editors and programs are pointed at byok, and pointing them there. The lines that
// change are shown before anything is written.

import { call } from "../api.js";
import {
  ago, announce, badge, button, command, dots, entryForm, errorBox, h, lineField, openDialog, replace,
} from "../dom.js";
import { keepShown, renderAgain } from "../refresh.js";
import { t, textOr } from "../texts.js";

// Those that people ask for first; when one has asked byok, those without anything to tell are
// behind a button, too.
const FIRST = ["vscode", "jetbrains", "cli", "sdk"];
const nameOf = ({ client, name }) => textOr(`editors.name.${client}`, name);
const TONES = { connected: "good", old: "warn" };
const ACTS = { connected: ["undo"], old: ["again", "undo"] };
const ELSEWHERE = new Set(["off", "missing"]); // who asks all the same has other settings
const titleOf = (act, one) => t("pair", { name: t(`editors.${act}`), value: nameOf(one) });

// Fill the block; it is shown again when requests end, or a client was changed. `isDemo()` tells
// whether byok gives files back when it ends.
export async function editorsBlock(body, signal, tools, isDemo) {
  let all = false;
  const load = async (options) => {
    const told = { ...await call("clients", {}, { signal, ...options }), isDemo };
    const isNew = !told.clients.some(({ last }) => last);
    const shown = told.clients.filter((one) => all || (isNew && FIRST.includes(one.client))
      || one.state in TONES || one.last || one.error);
    renderAgain(body, () => replace(body,
      h("ul", { class: "list editors" }, shown.map((one) => row(one, told, load))),
      all || shown.length < told.clients.length ? h("p", {}, button(
        t(all ? "editors.fewer" : "editors.all"), "little",
        () => { all = !all; return load(); }, { "data-key": "all" })) : null));
  };
  await keepShown(load, body, signal);
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

// Show what would change, and change it if the user agrees. For a client that was not found the
// user names its file first.
async function openClient(act, one, told, again) {
  if (act === "how") return openByHand(one, told);
  const verb = act === "undo" ? "disconnect" : "connect";
  const body = { client: one.client };
  const [trouble, shown, byHand] = [h("div"), h("div"), h("div")];
  const attemptIt = (work) => work().then(() => replace(trouble),
    (error) => replace(trouble, errorBox(error)));
  const show = (found) => {
    const plan = isMissing && !body.file ? null : found; // else it is only shown
    body.digest = plan?.digest;
    write.hidden = !plan?.needed;
    replace(shown, found && planParts(found, plan ? verb : "would"),
      plan?.needed && verb === "connect" && told.isDemo() ? h("p", {}, t("editors.demo")) : null);
    const words = [`byok ${verb} ${one.client}`, ...plan && verb === "connect" ? ["--write"] : [],
      ...plan && body.file ? [`--file "${plan.file}"`] : []];
    replace(byHand, plan || verb !== "connect" ? null : h("p", {}, t("editors.prints")),
      command(words.join(" ")));
  };
  const look = () => attemptIt(async () => show(await call(`client-${verb}`, body)));
  const write = button(t(verb === "connect" ? "editors.write" : "editors.disconnect"), "primary",
    () => attemptIt(async () => {
      await call(`client-${verb}`, { ...body, write: true });
      dialog.close();
      announce(t(verb === "connect" ? "editors.written" : "editors.restored",
        { name: nameOf(one) }));
      await again();
    }));
  const isMissing = one.state === "missing";
  show(null);
  await look();
  const dialog = openDialog(titleOf(act, one), [
    isMissing ? missingPart(one, (file) => { body.file = file; look(); }, () => show(null)) : null,
    trouble, shown, h("details", {}, h("summary", {}, t("editors.by-hand")), byHand)],
  (close) => [button(t("cancel"), "", close), write]);
}

// Say what to do about a client that was not found: install it, or name its file.
function missingPart(one, look, change) {
  const file = lineField({ id: "client-file", required: true, maxlength: "4096", class: "mono",
    value: one.file, on: { input: change } });
  return [h("p", {}, t("editors.missing", { name: nameOf(one) }), " ", t("editors.missing.do")),
  entryForm({ class: "inline" }, () => look(file.value.trim()),
    h("label", { for: file.id }, t("editors.file")), file,
    h("div", { class: "row" }, h("button", {}, t("editors.look"))))];
}

function planParts(plan, verb) {
  if (!plan.needed) return [h("p", {}, badge("good", t("editors.nothing")))];
  const about = verb === "would" ? "editors.would" : verb === "connect" ? "editors.adds"
    : plan.removes ? "editors.removes" : "editors.restores";
  return [h("p", {}, t(about), " ", h("code", {}, plan.file)),
    h("pre", { class: "lines", tabindex: "0", role: "region", "aria-label": t("editors.lines") },
      plan.lines.map(({ mark, line, text }) => h("span", { class: LINES[mark] },
        h("span", { class: "place" }, `${line} ${mark} `), `${text}\n`)))];
}

const LINES = { "+": "line more", "-": "line less", " ": "line" };

function openByHand(one, told) {
  openDialog(titleOf("how", one), [
    h("p", {}, t(`editors.where.${one.client}`)),
    h("h3", {}, t("editors.address")), command(told.url),
    h("h3", {}, t("editors.token")), h("p", { class: "quiet" }, t("editors.token-how")),
    command("byok token"),
    h("h3", {}, t("editors.more")), command(`byok connect ${one.client}`),
  ]);
}
