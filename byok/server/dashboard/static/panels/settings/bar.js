// The bar with the unsaved changes: which lines of the file they are, save, discard; and what the file
// has otherwise if somebody else changed it meanwhile.

import { call } from "../../api.js";
import { button, errorBox, h, replace, table } from "../../dom.js";
import { listed, t, textOr } from "../../texts.js";
import { fieldsOf, keyOf } from "./draft.js";
import { focusFault, hasField, markFields, written } from "./fields.js";

const PAUSE = 500; // ms without a key pressed, until the daemon is asked

// `save` and `discard` are what the buttons do; `refresh` is to be called after each change.
export class ChangesBar {
  constructor(draft, { save, discard, signal }) {
    this.draft = draft;
    this.signal = signal;
    this.timer = 0;
    this.count = h("strong", { role: "status" });
    this.lines = h("pre", { class: "lines", tabindex: "0", "aria-label": t("settings.lines") });
    this.folded = h("details", { hidden: true }, h("summary", {}, t("settings.lines")),
      this.lines);
    this.faults = h("div");
    this.notes = h("span", { class: "quiet" });
    this.saving = button("", "primary", save);
    this.element = h("div", { class: "changes card" }, this.faults,
      h("div", { class: "row" }, h("div", { class: "grow" }, this.count, this.notes, this.folded),
        button(t("settings.discard"), "", discard), this.saving));
    signal.addEventListener("abort", () => clearTimeout(this.timer));
    // Who comes back may have mended the file meanwhile.
    addEventListener("focus", () => this.refresh(), { signal });
  }

  refresh() {
    this.show();
    clearTimeout(this.timer);
    if (!this.draft.list.length) return this.showLines([], 0);
    this.timer = setTimeout(() => this.check().catch((error) => this.showFailure(error)), PAUSE);
  }

  showFailure(error) {
    if (error.name === "AbortError") return;
    this.showLines([], 0);
    replace(this.faults, errorBox(error));
  }

  show() {
    const { draft } = this;
    this.hide(!draft.size);
    const wrong = draft.invalid.size + draft.faults.size;
    const text = t("settings.change", { count: draft.size });
    const changed = jobsWith(draft).map((job) => t(`purpose.${job}`));
    if (this.count.textContent !== text) replace(this.count, text);
    replace(this.notes, draft.restarts.length ? [" · ", t(draft.form.in_place
      ? "settings.restart.after" : "settings.restart.after-ends")] : null,
    changed.length ? [" · ", t("settings.jobs-too", { names: listed(changed) })] : null,
    wrong ? [" · ", t("settings.wrong", { count: wrong }), " ",
      button(t("settings.wrong.show"), "little", focusFault)] : null);
    replace(this.saving, t(draft.restarts.length ? "settings.save-restart" : "settings.save"));
    this.saving.disabled = !draft.list.length || wrong > 0;
    markFields();
    const elsewhere = [...draft.faults].filter(([key]) => !hasField(JSON.parse(key)));
    replace(this.faults, elsewhere.map(([key, message]) =>
      h("p", { class: "error", role: "alert" }, [...JSON.parse(key), ""].join(" "), message)));
  }

  // What is entered stays in sight when the bar comes.
  hide(isHidden) {
    if (this.element.hidden === isHidden) return;
    this.element.hidden = isHidden;
    if (!isHidden) document.activeElement.scrollIntoView({ block: "nearest" });
  }

  // Ask the daemon what is wrong with the changes, and which lines they change.
  async check() {
    const asked = this.draft.list;
    const told = await call("settings-check", { changes: asked }, { signal: this.signal });
    if (JSON.stringify(asked) !== JSON.stringify(this.draft.list)) return; // there are newer ones
    showFaults(this.draft, told.errors);
    this.showLines(told.lines, told.more_lines);
    this.show();
  }

  showLines(lines, more) {
    replace(this.lines, lines.map(({ sign, line }) =>
      h("span", { class: sign === "+" ? "more" : "less" }, `${sign} ${line}\n`)),
    more ? t("settings.lines.more", { count: more }) : null);
    this.folded.hidden = !lines.length;
  }
}

// Return the jobs that get another model with that of chats, because none of their own is set.
function jobsWith(draft) {
  const { jobs } = draft.form;
  const isEmpty = (name) => {
    const own = draft.field(["routing", "models", name]);
    return !(draft.isChanged(own.path) ? draft.shown(own) : own.value);
  };
  return draft.isChanged(["routing", "default"])
    ? Object.keys(jobs).filter((job) => jobs[job].every(isEmpty)) : [];
}

// Put each fault at its setting.
export function showFaults(draft, errors) {
  draft.faults = new Map(errors.map((error) => [keyOf(error.path), error.message]));
}

const givenIn = (form) => new Map(fieldsOf(form).map(({ path, given }) => [keyOf(path), given]));

// Return the settings that two forms of the file have differently.
export function differences(before, after) {
  const [known, there] = [givenIn(before), givenIn(after)];
  return [...new Set([...known.keys(), ...there.keys()])]
    .map((key) => ({ path: JSON.parse(key), before: known.get(key), after: there.get(key) }))
    .filter((row) => JSON.stringify(row.before) !== JSON.stringify(row.after));
}

const nameOf = (name) => [textOr(`setting.${name}`, ""), " ", h("code", {}, name)];

// Return what shows the differences; `take` drops the user's own change of a setting.
export function conflictBox(draft, rows, take) {
  const write = (value) => (value === undefined ? t("settings.unset") : written(value));
  const mine = (row) => draft.changes.get(keyOf(row.path));
  const choice = (row) => h("span", { class: "row" }, write(mine(row).value),
    button(t("settings.take"), "", () => take(row)));
  const columns = [
    { title: t("settings.setting"), cell: (row) => nameOf(row.path.join(".")) },
    { title: t("settings.before"), cell: (row) => write(row.before) },
    { title: t("settings.now"), cell: (row) => write(row.after) },
    { title: t("settings.yours"), cell: (row) => (mine(row) ? choice(row) : "–") },
  ];
  return h("section", { class: "card conflict", tabindex: "-1" },
    h("h2", {}, t("settings.conflict")),
    h("p", {}, t("settings.conflict.about")),
    table(t("settings.conflict"), columns, rows, { empty: t("settings.conflict.none") }));
}
