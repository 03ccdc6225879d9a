// The settings file as a form: what is changed is saved into the file and used at once.

import { call } from "../api.js";
import { announce, errorBox, h, replace } from "../dom.js";
import { t, textOr } from "../texts.js";
import { ChangesBar, showFaults } from "./settings/bar.js";
import { conflictBox, differences } from "./settings/conflict.js";
import { Draft } from "./settings/draft.js";
import { fieldRow, focusFault, forgetFields } from "./settings/fields.js";
import { Keys } from "./settings/keys.js";
import { restartBox } from "./settings/restart.js";
import { addUpstream, newUpstream, upstreamCard } from "./settings/upstreams.js";

const OPEN = ["chat", "models"]; // groups that most people look for
const draft = new Draft();

export async function open(root, rest, signal) {
  draft.adopt(await call("settings", {}, { signal }));
  const view = new View(root, signal);
  view.render();
  signal.addEventListener("abort", () => {
    draft.changed = () => {};
    if (draft.size) announce(t("settings.kept"));
  });
  view.keys.read();
  view.readModels();
}

class View {
  constructor(root, signal) {
    this.root = root;
    this.signal = signal;
    this.conflict = [];
    this.isSaving = false;
    this.keys = new Keys(signal, draft);
    this.bar = new ChangesBar(draft, { save: () => this.save(),
      discard: () => this.discard(), signal });
    this.models = [];
    this.upstreams = h("div", { class: "upstreams" });
    this.names = "";
  }

  // Show everything anew.
  render() {
    forgetFields();
    const { bar } = this;
    const { form } = draft;
    draft.changed = () => {
      draft.faults.clear();
      if (this.names !== draft.upstreamChanges) this.renderUpstreams();
      bar.refresh();
    };
    this.renderUpstreams();
    replace(this.root, this.search(), this.messages(),
      this.conflict.length ? conflictBox(draft, this.conflict, (row) => this.take(row)) : null,
      restartBox(form, this.signal),
      h("section", { class: "card" }, h("h2", {}, t("settings.upstreams")), this.upstreams),
      form.groups.map((group) => this.group(group)), hiddenNote(form), bar.element,
      modelLists(this.models));
    bar.refresh();
  }

  messages() {
    const { form } = draft;
    const where = h("p", { class: "quiet" }, t(form.exists || form.error
      ? "settings.file" : "settings.no-file"),
      " ", h("code", {}, form.file));
    const box = (key, hint) => [where, errorBox({ message: t(key), hint })];
    if (form.blocked) return box("settings.blocked", form.blocked);
    return form.error ? box("settings.not-in-force", form.error) : where;
  }

  search() {
    const input = (event) => filter(this.root, event.target.value.trim().toLowerCase());
    return h("div", { class: "find", role: "search" },
      h("label", { for: "find-setting" }, t("settings.find")),
      h("input", { id: "find-setting", type: "search", autocomplete: "off", on: { input } }));
  }

  renderUpstreams() {
    this.names = draft.upstreamChanges;
    forgetFields(["upstreams"]);
    const { form } = draft;
    const known = form.upstreams.map((one) => one.name);
    const added = draft.added.filter((name) => !known.includes(name))
      .map((name) => newUpstream(draft, name));
    const cards = [...form.upstreams, ...added].map((one) =>
      upstreamCard(draft, one, this.keys));
    const hadFocus = this.upstreams.contains(document.activeElement);
    replace(this.upstreams,
      cards.length ? cards : h("p", { class: "empty" }, t("settings.no-upstream")),
      form.blocked ? null : addUpstream(draft));
    if (hadFocus) this.upstreams.querySelector("button").focus();
  }

  group({ name, fields }) {
    const rows = fields.map((field) => fieldRow(draft, field, "models-all"));
    const count = fields.filter((field) => draft.shown(field) !== undefined).length;
    const isOpen = OPEN.includes(name) || count > 0 || fields.some((one) => draft.fault(one.path));
    const isOfficial = name === "official" && fields[0].value; // it has an address
    return h("details", { class: "card group", open: isOpen, "data-group": name },
      h("summary", {}, h("h2", {}, textOr(`settings.group.${name}`, name)), " ",
        count ? h("span", { class: "quiet" }, t("settings.count", { count })) : null),
      isOfficial ? this.keys.line("official") : null, h("div", { class: "fields" }, rows));
  }

  async readModels() {
    try {
      const options = { signal: this.signal, background: true };
      this.models = (await call("catalog", {}, options)).models;
    } catch (error) {
      if (error.name === "AbortError") return;
      this.models = []; // models can be typed all the same
    }
    for (const list of this.root.querySelectorAll("datalist")) list.remove();
    this.root.append(...modelLists(this.models));
  }

  // Of two clicks in a row the second is none: it would find the file changed.
  async save() {
    if (this.isSaving) return;
    this.isSaving = true;
    const changes = draft.list;
    const body = { revision: draft.form.revision, changes };
    try {
      this.showSaved(await call("settings-save", body, { signal: this.signal }), changes);
    } catch (error) {
      if (error.code === "settings_changed") return this.compare();
      this.showFailure(error);
    } finally {
      this.isSaving = false;
    }
  }

  showSaved(told, changes) {
    if (told.errors.length) return this.showFaults(told.errors);
    draft.forget(changes);
    this.conflict = [];
    draft.adopt(told.form);
    this.render();
    this.keys.read();
    const moves = changes.some(({ path }) => path.join(".") === "server.port");
    const outcome = moves ? "settings.restart.moved" : "settings.saved";
    announce(t(told.form.error ? "settings.saved.unused" : outcome));
    this.focus("#find-setting");
  }

  showFailure(error) {
    if (error.name !== "AbortError") this.root.prepend(errorBox(error));
  }

  showFaults(errors) {
    showFaults(draft, errors);
    this.render();
    focusFault();
  }

  // The file is not what it was: show what differs, with the user's changes on top.
  async compare() {
    const before = draft.form;
    try {
      draft.adopt(await call("settings", {}, { signal: this.signal }));
    } catch (error) {
      return this.showFailure(error);
    }
    this.conflict = differences(before, draft.form);
    this.render();
    this.focus(".conflict");
    announce(t("settings.conflict"));
  }

  take(row) {
    draft.drop(row.path);
    this.render();
    this.focus(".conflict button");
  }

  discard() {
    draft.clear();
    this.conflict = [];
    this.render();
    this.focus("#find-setting");
  }

  // Put the focus on something, or on what is always there.
  focus(selector) {
    const { root } = this;
    (root.querySelector(selector) ?? root.querySelector("#find-setting")).focus();
  }
}

const hiddenNote = (form) => h("section", { class: "card" },
  h("h2", {}, t("settings.hidden")),
  h("p", {}, t("settings.hidden.about")),
  form.hidden.length ? h("p", {}, t("settings.hidden.set"), " ",
    form.hidden.map((path) => [h("code", {}, path.join(".")), " "])) : null,
  h("pre", {}, "byok config path\nbyok config example"));

// Return the lists of models that fields offer: whole ids, and those of each upstream.
function modelLists(models) {
  const names = [...new Set(models.map((model) => model.upstream))];
  const list = (id, values) => h("datalist", { id }, values.map((value) => h("option", { value })));
  return [list("models-all", models.map((model) => model.id)),
    ...names.map((name) => list(`models-of-${name}`, models
      .filter((model) => model.upstream === name).map((model) => model.model)))];
}

// Show only what has the words in its name or its explanation.
function filter(root, words) {
  for (const row of root.querySelectorAll(".field")) {
    const text = `${row.dataset.name} ${row.textContent}`.toLowerCase();
    row.hidden = Boolean(words) && !text.includes(words);
  }
  for (const group of root.querySelectorAll("details.group, .upstream, .upstream details")) {
    const isFound = [...group.querySelectorAll(".field")].some((row) => !row.hidden);
    group.hidden = Boolean(words) && !isFound;
    if (words && isFound && "open" in group) group.open = true;
  }
}
