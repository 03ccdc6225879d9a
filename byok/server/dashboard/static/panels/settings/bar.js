// The bar with the unsaved changes: which lines of the file they are, save, discard.

import { call } from "../../api.js";
import { button, errorBox, h, replace } from "../../dom.js";
import { t } from "../../texts.js";
import { keyOf } from "./draft.js";
import { focusFault, hasField, markFields } from "./fields.js";

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
    if (this.count.textContent !== text) replace(this.count, text);
    replace(this.notes, draft.restarts.length ? [" · ", t(draft.form.in_place
      ? "settings.restart.after" : "settings.restart.after-ends")] : null,
    changesCompletions(draft) ? [" · ", t("settings.completions-too",
      { name: t("setting.routing.models.completion") })] : null,
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

// Completions without a model of their own get one of the upstream that chats use.
function changesCompletions(draft) {
  const own = draft.field(["routing", "models", "completion"]);
  return draft.isChanged(["routing", "default"]) && !own.value && draft.shown(own) === undefined;
}

// Put each fault at its setting.
export function showFaults(draft, errors) {
  draft.faults = new Map(errors.map((error) => [keyOf(error.path), error.message]));
}
