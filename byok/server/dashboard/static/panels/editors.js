// Connecting editors and other clients to byok, and disconnecting them. The lines of their files
// that will change are shown before anything is written.

import { call } from "../api.js";
import {
  ago, announce, badge, button, commandBox, entryForm, errorBox, h, joinWithDots, lineField,
  openDialog, replace,
} from "../dom.js";
import { keepUpdated, renderAgain } from "../refresh.js";
import { t, textOr } from "../texts.js";

// The clients that are always shown until one has made a request; the others are behind a button.
const FIRST_CLIENTS = ["vscode", "jetbrains", "cli", "sdk"];
const TONES = { connected: "good", old: "warn" };
const STATE_ACTIONS = { connected: ["undo"], old: ["again", "undo"] };
// In these states a client that makes requests all the same has other settings than byok wrote.
const NOT_CONNECTED = new Set(["off", "missing"]);
const LINE_CLASSES = { "+": "line more", "-": "line less", " ": "line" };

// Fill the block of clients, again when requests end or a client was changed. `isDemo()` returns
// whether byok restores the files of clients when it ends.
export async function editorsBlock(body, signal, isDemo) {
  let showsAll = false;
  const load = async (options) => {
    const status = { ...await call("clients", {}, { signal, ...options }), isDemo };
    const isUnused = !status.clients.some(({ last }) => last);
    const clients = status.clients.filter((client) => showsAll
      || (isUnused && FIRST_CLIENTS.includes(client.client))
      || client.state in TONES || client.last || client.error);
    renderAgain(body,
      h("ul", { class: "list editors" }, clients.map((client) => clientRow(client, status, load))),
      showsAll || clients.length < status.clients.length ? h("p", {}, button(
        t(showsAll ? "editors.fewer" : "editors.all"), "little",
        () => { showsAll = !showsAll; return load(); }, { "data-key": "all" })) : null);
  };
  await keepUpdated(load, body, signal);
}

const nameOf = ({ client, name }) => textOr(`editors.name.${client}`, name);
const titleOf = (action, client) =>
  t("pair", { name: t(`editors.${action}`), value: nameOf(client) });

function clientRow(client, status, reload) {
  const actions = STATE_ACTIONS[client.state] ?? [client.writable ? "connect" : "how"];
  const last = client.last ? [t("editors.last"), " ", ago(client.last)] : null;
  const state = client.error
    || (client.state || !last ? t(`editors.state.${client.state || "by-hand"}`) : null);
  return h("li", {},
    h("div", { class: "grow" }, h("strong", {}, nameOf(client)),
      h("div", { class: `small ${TONES[client.state] ?? "quiet"}` },
        last && NOT_CONNECTED.has(client.state)
          ? [last, t(`editors.elsewhere.${client.state}`)] : joinWithDots(state, last))),
    actions.map((action) => button(t(`editors.${action}`), "little",
      () => openClient(action, client, status, reload), { "aria-label": titleOf(action, client) })));
}

// Show in a dialog what would change in a client's file, and change it if the user agrees. For a
// client that was not found the user names its file first.
async function openClient(action, client, status, reload) {
  if (action === "how") return openInstructions(client, status);
  const verb = action === "undo" ? "disconnect" : "connect";
  const body = { client: client.client };
  const [errorSlot, planSlot, byHand] = [h("div"), h("div"), h("div")];
  const attemptWork = (work) => work().then(() => replace(errorSlot),
    (error) => replace(errorSlot, errorBox(error)));
  const showPlan = (answer) => {
    const plan = isMissing && !body.file ? null : answer; // null: the lines are only an example
    body.digest = plan?.digest;
    write.hidden = !plan?.needed;
    replace(planSlot, answer && planParts(answer, plan ? verb : "would"),
      plan?.needed && verb === "connect" && status.isDemo() ? h("p", {}, t("editors.demo")) : null);
    const commandParts = [`byok ${verb} ${client.client}`,
      ...plan && verb === "connect" ? ["--write"] : [],
      ...plan && (body.file || status.isDemo()) ? [`--file "${plan.file}"`] : []];
    replace(byHand, plan || verb !== "connect" ? null : h("p", {}, t("editors.prints")),
      commandBox(commandParts.join(" ")));
  };
  const loadPlan = () => attemptWork(async () => showPlan(await call(`client-${verb}`, body)));
  const write = button(t(verb === "connect" ? "editors.write" : "editors.disconnect"), "primary",
    () => attemptWork(async () => {
      await call(`client-${verb}`, { ...body, write: true });
      dialog.close();
      announce(t(verb === "connect" ? "editors.written" : "editors.restored",
        { name: nameOf(client) }));
      await reload();
    }));
  const isMissing = client.state === "missing";
  showPlan(null);
  await loadPlan();
  const dialog = openDialog(titleOf(action, client), [
    isMissing ? fileForm(client, (file) => { body.file = file; loadPlan(); }, () => showPlan(null)) : null,
    errorSlot, planSlot, h("details", {}, h("summary", {}, t("editors.by-hand")), byHand)],
  (close) => [button(t("cancel"), "", close), write]);
}

// Return what to do about a client that was not found: install it, or enter its file in a form.
function fileForm(client, onFile, onInput) {
  const file = lineField({ id: "client-file", required: true, maxlength: "4096", class: "mono",
    value: client.file, on: { input: onInput } });
  return [h("p", {}, t("editors.missing", { name: nameOf(client) }), " ", t("editors.missing.do")),
  entryForm({ class: "inline" }, () => onFile(file.value.trim()),
    h("label", { for: file.id }, t("editors.file")), file,
    h("div", { class: "row" }, h("button", {}, t("editors.look"))))];
}

function planParts(plan, verb) {
  if (!plan.needed) return [h("p", {}, badge("good", t("editors.nothing")))];
  const introduction = verb === "would" ? "editors.would" : verb === "connect" ? "editors.adds"
    : plan.removes ? "editors.removes" : "editors.restores";
  return [h("p", {}, t(introduction), " ", h("code", {}, plan.file)),
    h("pre", { class: "lines", tabindex: "0", role: "region", "aria-label": t("editors.lines") },
      plan.lines.map(({ mark, line, text }) => h("span", { class: LINE_CLASSES[mark] },
        h("span", { class: "place" }, `${line} ${mark} `), `${text}\n`)))];
}

// Show how to connect a client that byok does not change.
function openInstructions(client, status) {
  openDialog(titleOf("how", client), [
    h("p", {}, t(`editors.where.${client.client}`)),
    h("h3", {}, t("editors.address")), commandBox(status.url),
    h("h3", {}, t("editors.token")), h("p", { class: "quiet" }, t("editors.token-how")),
    commandBox("byok token"),
    h("h3", {}, t("editors.more")), commandBox(`byok connect ${client.client}`),
  ]);
}
