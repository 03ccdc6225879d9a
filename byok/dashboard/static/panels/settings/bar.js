// The bar with the unsaved changes: which lines of the file they are, save, discard.

import { call } from "../../api.js";
import { errorBox, h, replace } from "../../dom.js";
import { t } from "../../texts.js";
import { keyOf } from "./draft.js";
import { hasField, markFields } from "./fields.js";

const PAUSE = 500; // ms without a key pressed, until the daemon is asked

// Return the bar, and `refresh`, to be called after each change; `save` and `discard` are
// what its buttons do.
export function changesBar(draft, { save, discard, signal }) {
  const count = h("strong", { role: "status" });
  const lines = h("pre", { class: "lines", tabindex: "0", "aria-label": t("settings.lines") });
  const preview = h("details", {}, h("summary", {}, t("settings.lines")), lines);
  const faults = h("div");
  const restart = h("p", { class: "quiet" });
  const saving = h("button", { type: "button", class: "primary", on: { click: () => save() } },
    t("settings.save"));
  const bar = h("div", { class: "changes card" }, faults,
    preview, restart,
    h("div", { class: "row" }, count, h("span", { class: "space" }),
      h("button", { type: "button", on: { click: discard } }, t("settings.discard")), saving));
  let timer = 0;
  signal.addEventListener("abort", () => clearTimeout(timer));

  const show = () => {
    bar.hidden = !draft.size && !draft.invalid.size;
    const text = t(draft.size === 1 ? "settings.change" : "settings.changes",
      { count: draft.size });
    if (count.textContent !== text) replace(count, text);
    saving.disabled = !draft.size || draft.invalid.size > 0 || draft.faults.size > 0;
    markFields();
    const elsewhere = [...draft.faults].filter(([key]) => !hasField(JSON.parse(key)));
    replace(faults, elsewhere.map(([key, message]) =>
      h("p", { class: "error", role: "alert" }, [...JSON.parse(key), ""].join(" "), message)));
  };
  const check = async () => {
    const asked = draft.list;
    const told = await call("settings-check", { changes: asked }, { signal });
    if (JSON.stringify(asked) !== JSON.stringify(draft.list)) return; // there are newer ones
    showFaults(draft, told.errors);
    replace(lines, told.lines.map(({ sign, line }) =>
      h("span", { class: sign === "+" ? "more" : "less" }, `${sign} ${line}\n`)));
    preview.hidden = !told.lines.length;
    replace(restart, told.restart.length
      ? t("settings.restart.after", { names: told.restart.join(", ") }) : null);
    show();
  };
  const refresh = () => {
    show();
    clearTimeout(timer);
    if (!draft.size) return;
    timer = setTimeout(() => check().catch((error) => {
      if (error.name !== "AbortError") replace(faults, errorBox(error));
    }), PAUSE);
  };
  return { bar, refresh };
}

// Put each fault at its setting.
export function showFaults(draft, errors) {
  draft.faults = new Map(errors.map((error) => [keyOf(error.path), error.message]));
}
