// The settings: upstreams, those that people change first, in words, then all others of the
// file, found by a word. What is changed is saved into the file and used at once.

import { call } from "../api.js";
import { captureSection } from "../capture.js";
import {
  announce, attempt, button, copyButton, errorBox, flushSection, h, nothing, replace, seekField,
  seeking, showTools,
} from "../dom.js";
import { icon } from "../icons.js";
import { pulse, renderAgain } from "../refresh.js";
import { sentences, t, textOr } from "../texts.js";
import { upstreamLook } from "../upstream-state.js";
import { addressesOf } from "./settings/address.js";
import { ChangesBar, conflictBox, differences, showFaults } from "./settings/bar.js";
import { commonSection, isCommon } from "./settings/common.js";
import { Draft } from "./settings/draft.js";
import { fieldRow, focusFault, forgetFields, idOf, offerModels, unfold } from "./settings/fields.js";
import { fileOnly } from "./settings/file-only.js";
import { Keys } from "./settings/keys.js";
import { openRestart, restartBox } from "./settings/restart.js";
import { openAddition, stateLine, upstreamRow } from "./settings/upstreams.js";

const draft = new Draft();

// `#/settings/find/WORDS` finds settings, `#/settings/set/NAME` leads to one, perhaps with a
// value that is not saved yet, `#/settings/choose/NAME` offers models for it, `#/settings/key/NAME`
// asks for a key, `#/settings/add` adds an upstream, and `#/settings/add/KIND` one of that kind.
export async function open(root, [what, words, value], signal) {
  draft.adopt(await call("settings", {}, { signal }));
  const view = new View(root, signal, what === "find" ? words ?? "" : "", { name: words, value });
  view.render();
  signal.addEventListener("abort", () => {
    draft.changed = () => {};
    if (draft.size) announce(t("settings.kept"));
  });
  view.readFacts();
  if (what === "set" || what === "choose") view.show(words, value);
  if (view.keys.places.has(what === "key" && words)) view.keys.enter(words);
  if (["add", "key"].includes(what)) {
    history.replaceState(history.state, "", "#/settings"); // neither a reload nor Back asks again
  }
  if (what === "add" && !draft.form.blocked) view.add(words);
  if (what === "choose") await view.choose(words);
}

class View {
  constructor(root, signal, words, wanted) {
    this.root = root;
    this.wanted = wanted; // a setting that somebody is led to, and its new value
    this.signal = signal;
    this.conflict = [];
    this.soon = pulse(signal);
    this.keys = new Keys(signal, draft);
    this.bar = new ChangesBar(draft, { save: () => this.save(),
      discard: () => this.discard(), signal });
    this.trouble = h("div");
    this.upstreams = h("ul", { class: "list upstreams" });
    this.states = []; // of upstreams
    this.look = upstreamLook((states) => {
      this.states = states;
      this.showStates();
    }, this.trouble, signal);
    addEventListener("byok-upstreams", () => this.look({ background: true }), { signal });
    this.capture = captureSection(signal);
    this.removed = "";
    this.finder = seekField(t("settings.find"), () => this.filter(),
      { id: "find-setting", value: words });
    this.unfound = nothing("search", t("settings.unfound"), t("settings.unfound.about"));
  }

  // Show everything anew.
  render() {
    forgetFields();
    this.unfolded = unfoldedIn(this.root);
    const { form } = draft;
    draft.changed = () => {
      draft.faults.clear();
      if (this.removed !== draft.removed) this.renderUpstreams();
      this.bar.refresh();
    };
    this.renderUpstreams();
    showTools(fileName(form), button(t("settings.restart.do"), "", () => openRestart()));
    replace(this.trouble);
    replace(this.root,
      seeking(this.finder, "search"),
      this.trouble, messages(form),
      this.conflict.length ? conflictBox(draft, this.conflict, (row) => this.take(row)) : null,
      restartBox(form), this.unfound, this.upstreamsSection(), commonSection(draft),
      this.capture,
      h("section", { class: "card", "data-part": "all" }, h("h2", {}, t("settings.all")),
        form.groups.map((group) => this.group(group))),
      fileOnly(form, this.unfolded.includes("file"), this.wanted), this.bar.element);
    this.filter();
    this.bar.refresh();
    this.soon(form.error && (() => this.lookAgain()));
  }

  // Who is told of an error mends the file in an editor; then the page shows what it has.
  async lookAgain() {
    const form = await call("settings", {}, { signal: this.signal, background: true })
      .catch((error) => this.showFailure(error));
    if (!form) return;
    const isSame = ["revision", "error"].every((name) => form[name] === draft.form[name]);
    if (isSame || draft.size) return this.soon(() => this.lookAgain());
    draft.adopt(form);
    this.renderInPlace([]);
    this.readFacts();
  }

  upstreamsSection() {
    const add = button([icon("plus"), t("settings.add")], "primary little", () => this.add());
    const element = flushSection(t("overview.upstreams"), draft.form.blocked ? null : add,
      draft.form.upstreams.length ? null : h("p", { class: "empty" }, t("settings.no-upstream")),
      this.upstreams);
    element.dataset.part = "upstreams";
    return element;
  }

  renderUpstreams() {
    this.removed = draft.removed;
    forgetFields(["upstreams"]);
    const unfolded = unfoldedIn(this.upstreams);
    const hadFocus = this.upstreams.contains(document.activeElement);
    replace(this.upstreams, draft.form.upstreams.map((one) =>
      upstreamRow(draft, one, this.keys, unfolded)));
    if (hadFocus) this.upstreams.querySelector("button")?.focus();
    this.showStates();
  }

  showStates() {
    for (const one of this.states) {
      const row = this.upstreams.querySelector(`[data-upstream="${CSS.escape(one.name)}"]`);
      const place = row?.querySelector(".state"); // none of one that is to be removed
      if (place) renderAgain(place, () => replace(place, stateLine(one)));
    }
  }

  group({ name, fields }) {
    const rare = fields.filter((field) => !isCommon(field));
    const rows = rare.map((field) => fieldRow(draft, field));
    const count = rare.filter((field) => draft.shown(field) !== undefined).length;
    const isOpen = this.unfolded.includes(name)
      || rare.some(({ path }) => draft.fault(path) || draft.isChanged(path));
    const isOfficial = name === "official" && fields[0].value; // it has an address
    return h("details", { open: isOpen, "data-part": name },
      h("summary", {}, textOr(`settings.group.${name}`, name), " ",
        count ? h("span", { class: "quiet" }, t("settings.count", { count })) : null),
      isOfficial ? this.keys.line("official") : null, h("div", { class: "fields" }, rows));
  }

  // Show only what has the words in its name, its explanation, in English too, or its section.
  filter() {
    const words = this.finder.value.trim();
    const isMeant = matcher(words);
    for (const row of this.root.querySelectorAll(".field")) {
      const section = row.closest("[data-part]").querySelector(":scope > :is(h3, summary)");
      const texts = [section, ...row.querySelectorAll("label, strong, span, p, option")]
        .map((one) => one?.textContent);
      row.hidden = !isMeant([row.dataset.name, row.dataset.about, ...texts].join(" "));
    }
    const isFound = (part) => [part, ...part.querySelectorAll(".field, [data-upstream]")]
      .some((one) => (one.dataset.upstream ? isMeant(`${one.dataset.upstream} key ${t("settings.key")}`)
        : one.matches(".field:not([hidden])")));
    for (const part of this.root.querySelectorAll("[data-part]")) {
      part.hidden = Boolean(words) && !isFound(part);
      if (part.matches("details")) {
        showFound(part, Boolean(words && part.querySelector(".field:not([hidden])")));
      }
    }
    this.unfound.hidden = !words || [...this.root.querySelectorAll("[data-part]")]
      .some((part) => !part.hidden);
  }

  // Ask for keys, models, and how upstreams are.
  async readFacts() {
    const { signal } = this;
    this.models = attempt(this.trouble, signal, async () =>
      offerModels(await call("catalog", {}, { signal, background: true })));
    await Promise.all([this.keys.read(), this.models,
      attempt(this.trouble, signal, () => this.look({ background: true }))]);
  }

  // Offer models for a setting, unless the user has gone on meanwhile.
  async choose(name) {
    await this.models;
    const row = document.activeElement.closest(`[data-name="${CSS.escape(name ?? "")}"]`);
    if (this.signal.aborted || !row) return;
    history.replaceState(history.state, "", `#/settings/set/${name}`); // Back offers none
    row.querySelector(".control button")?.click();
  }

  // Lead to a setting, and enter a value if there is one; of an upstream that is gone, to what others
  // have by that name.
  show(name, value) {
    const row = this.root.querySelector(`[data-name="${CSS.escape(name ?? "")}"]`);
    if (!row) {
      this.finder.value = name?.split(".").at(-1) ?? "";
      return this.filter();
    }
    const entry = row.querySelector("input, select, textarea, button"); // none if it is fixed
    unfold(row);
    if (value && entry && !entry.disabled) {
      entry.value = value;
      entry.dispatchEvent(new Event("input", { bubbles: true }));
    }
    row.classList.add("sought");
    row.scrollIntoView({ block: "center" });
    entry?.focus({ preventScroll: true });
  }

  // An upstream is saved at once, and tried; what else was changed waits.
  add(wanted) {
    openAddition(draft.form, wanted, async ({ name, type, address, key, vault }) => {
      const path = ["upstreams", name];
      const changes = [{ path, value: {} }];
      if (type) changes.push({ path: [...path, "type"], value: type });
      if (address) changes.push({ path: [...path, "base_url"], value: address });
      const body = { revision: draft.form.revision, changes };
      const told = await call("settings-save", body, { signal: this.signal })
        .catch(async (error) => {
          if (error.code === "settings_changed") await this.compare();
          throw error;
        });
      if (told.errors.length) throw new Error(sentences(...told.errors.map((one) => one.message)));
      draft.adopt(told.form);
      this.render();
      await this.readFacts();
      if (key) await this.keys.store(name, key, addressesOf(draft, name).used, vault);
      announce(t("settings.added", { name }));
    }, this.keys, this.signal);
  }

  async save() {
    const changes = draft.list;
    const { restarts } = draft;
    const body = { revision: draft.form.revision, changes };
    try {
      this.showSaved(await call("settings-save", body, { signal: this.signal }), changes, restarts);
    } catch (error) {
      if (error.code === "settings_changed") return this.compare();
      this.showFailure(error);
    }
  }

  showSaved(told, changes, restarts) {
    if (told.errors.length) return this.showFaults(told.errors);
    draft.forget(changes);
    this.conflict = [];
    draft.adopt(told.form);
    this.renderInPlace(changes);
    this.readFacts();
    if (restarts.length && !told.form.error) {
      return openRestart({ form: told.form, names: restarts });
    }
    announce(t(told.form.error ? "settings.saved.unused" : "settings.saved"));
  }

  showFailure(error) {
    if (!this.signal.aborted) replace(this.trouble, errorBox(error));
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
    const changes = draft.list;
    draft.clear();
    this.conflict = [];
    this.renderInPlace(changes);
    announce(t("settings.discarded"));
  }

  // Show everything anew; the user stays where they are.
  renderInPlace(changes) {
    const top = scrollY;
    this.render();
    document.getElementById(idOf(changes.at(-1)?.path ?? []))?.focus({ preventScroll: true });
    scrollTo(0, top);
  }

  // Put the focus on something, or on what is always there.
  focus(selector) {
    (this.root.querySelector(selector) ?? this.finder).focus();
  }
}

// Return what tells whether each of some words begins a word of a text; Chinese has no such
// beginnings.
function matcher(words) {
  const patterns = words.split(/\s+/u).map((word) =>
    new RegExp(`(?<![a-z])${word.replace(/[\\^$.*+?()[\]{}|/]/gu, "\\$&")}`, "iu"));
  return (text) => patterns.every((pattern) => pattern.test(text));
}

// Unfold a part that has a setting which was found, and fold it again when nothing is sought.
function showFound(part, isFound) {
  const isOpen = isFound || part.querySelector(".changed");
  if (isOpen ? part.open : !("found" in part.dataset)) return;
  part.toggleAttribute("data-found", isOpen);
  part.open = isOpen;
}

const unfoldedIn = (root) => [...root.querySelectorAll("details[open]:not([data-found])")]
  .map((one) => one.dataset.part);

const fileName = ({ file }) => h("span", { class: "row tight quiet" },
  h("code", { title: file }, file.split(/[/\\]/u).at(-1)), copyButton(file, t("settings.file")));

function messages({ file, exists, blocked, error }) {
  if (blocked || error) {
    return errorBox({ message: t(blocked ? "settings.blocked" : "settings.not-in-force"),
      hint: blocked || error });
  }
  return exists ? null
    : h("p", { class: "quiet" }, t("settings.no-file"), " ", h("code", {}, file));
}
