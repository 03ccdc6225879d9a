// The bar with the unsaved changes: the lines of the file that they change, and the buttons that save
// or discard them. Also the comparison with a file that somebody else has changed meanwhile.

import { call } from "../../api.js";
import { button, errorBox, h, replace, table } from "../../dom.js";
import { joinList, t, textOr } from "../../texts.js";
import { fieldsOf, keyOf } from "./draft.js";
import { focusFault, hasField, refreshMarks, valueText } from "./fields.js";

const CHECK_DELAY_MS = 500; // after the last change, before the daemon checks the changes

// The bar; `save` and `discard` are called by its buttons, and `refresh` must be called after each
// change.
export class ChangesBar {
  constructor(draft, { save, discard, signal }) {
    this.draft = draft;
    this.signal = signal;
    this.timer = 0;
    this.count = h("strong", { role: "status" });
    this.lines = h("pre", { class: "lines", tabindex: "0", "aria-label": t("settings.lines") });
    this.linesDetails = h("details", { hidden: true }, h("summary", {}, t("settings.lines")),
      this.lines);
    this.faults = h("div");
    this.notes = h("span", { class: "quiet" });
    this.saveButton = button("", "primary", save);
    this.element = h("div", { class: "changes card" }, this.faults,
      h("div", { class: "row" },
        h("div", { class: "grow" }, this.count, this.notes, this.linesDetails),
        button(t("settings.discard"), "", discard), this.saveButton));
    signal.addEventListener("abort", () => clearTimeout(this.timer));
    // A user who comes back to the page may have changed the file meanwhile.
    addEventListener("focus", () => this.refresh(), { signal });
  }

  refresh() {
    this.show();
    clearTimeout(this.timer);
    if (!this.draft.changeList.length) return this.showLines([], 0);
    this.timer = setTimeout(() => this.check().catch((error) => this.showFailure(error)),
      CHECK_DELAY_MS);
  }

  showFailure(error) {
    if (error.name === "AbortError") return;
    this.showLines([], 0);
    replace(this.faults, errorBox(error));
  }

  show() {
    const { draft } = this;
    this.setHidden(!draft.size);
    const faultCount = draft.invalid.size + draft.faults.size;
    const text = t("settings.change", { count: draft.size });
    const jobs = affectedJobs(draft).map((job) => t(`purpose.${job}`));
    if (this.count.textContent !== text) replace(this.count, text);
    replace(this.notes, draft.restarts.length ? [" · ", t(draft.form.in_place
      ? "settings.restart.after" : "settings.restart.after-ends")] : null,
    jobs.length ? [" · ", t("settings.jobs-too", { names: joinList(jobs) })] : null,
    faultCount ? [" · ", t("settings.wrong", { count: faultCount }), " ",
      button(t("settings.wrong.show"), "little", focusFault)] : null);
    replace(this.saveButton, t(draft.restarts.length ? "settings.save-restart" : "settings.save"));
    this.saveButton.disabled = !draft.changeList.length || faultCount > 0;
    refreshMarks();
    const elsewhere = [...draft.faults].filter(([key]) => !hasField(JSON.parse(key)));
    replace(this.faults, elsewhere.map(([key, message]) =>
      h("p", { class: "error", role: "alert" }, [...JSON.parse(key), ""].join(" "), message)));
  }

  // Hide or show the bar. The focused field stays in sight when the bar appears.
  setHidden(isHidden) {
    if (this.element.hidden === isHidden) return;
    this.element.hidden = isHidden;
    if (!isHidden) document.activeElement.scrollIntoView({ block: "nearest" });
  }

  // Have the daemon check the changes, and show the faults and the lines that change.
  async check() {
    const changes = this.draft.changeList;
    const result = await call("settings-check", { changes }, { signal: this.signal });
    if (JSON.stringify(changes) !== JSON.stringify(this.draft.changeList)) return; // changed meanwhile
    storeFaults(this.draft, result.errors);
    this.showLines(result.lines, result.more_lines);
    this.show();
  }

  showLines(lines, more) {
    replace(this.lines, lines.map(({ sign, line }) =>
      h("span", { class: sign === "+" ? "more" : "less" }, `${sign} ${line}\n`)),
    more ? t("settings.lines.more", { count: more }) : null);
    this.linesDetails.hidden = !lines.length;
  }
}

// Return the jobs whose model changes with the model of chats, because they have none of their own.
function affectedJobs(draft) {
  const { jobs } = draft.form;
  const isUnset = (name) => {
    const field = draft.field(["routing", "models", name]);
    return !(draft.isChanged(field.path) ? draft.shownValue(field) : field.value);
  };
  return draft.isChanged(["routing", "default"])
    ? Object.keys(jobs).filter((job) => jobs[job].every(isUnset)) : [];
}

// Store the faults that the daemon found, by the keys of their settings.
export function storeFaults(draft, errors) {
  draft.faults = new Map(errors.map((error) => [keyOf(error.path), error.message]));
}

// Return the values that a form of the file has, by key.
const valuesInFile = (form) =>
  new Map(fieldsOf(form).map(({ path, given }) => [keyOf(path), given]));

// Return the settings whose values differ between two forms of the file: {path, before, after}.
export function listDifferences(before, after) {
  const [valuesBefore, valuesAfter] = [valuesInFile(before), valuesInFile(after)];
  return [...new Set([...valuesBefore.keys(), ...valuesAfter.keys()])]
    .map((key) =>
      ({ path: JSON.parse(key), before: valuesBefore.get(key), after: valuesAfter.get(key) }))
    .filter((row) => JSON.stringify(row.before) !== JSON.stringify(row.after));
}

const nameOf = (name) => [textOr(`setting.${name}`, ""), " ", h("code", {}, name)];

// Return the comparison with the changed file; `onTake(row)` is called when the user drops their own
// change of a setting.
export function conflictBox(draft, rows, onTake) {
  const format = (value) => (value === undefined ? t("settings.unset") : valueText(value));
  const ownChange = (row) => draft.changes.get(keyOf(row.path));
  const ownValue = (row) => h("span", { class: "row" }, format(ownChange(row).value),
    button(t("settings.take"), "", () => onTake(row)));
  const columns = [
    { title: t("settings.setting"), cell: (row) => nameOf(row.path.join(".")) },
    { title: t("settings.before"), cell: (row) => format(row.before) },
    { title: t("settings.now"), cell: (row) => format(row.after) },
    { title: t("settings.yours"), cell: (row) => (ownChange(row) ? ownValue(row) : "–") },
  ];
  return h("section", { class: "card conflict", tabindex: "-1" },
    h("h2", {}, t("settings.conflict")),
    h("p", {}, t("settings.conflict.about")),
    table(t("settings.conflict"), columns, rows, { empty: t("settings.conflict.none") }));
}
