// The settings that people change first, in words; all others have the names of the file.

import { flushSection, h } from "../../dom.js";
import { t } from "../../texts.js";
import { fieldRow } from "./fields.js";

const GROUPS = {
  "models.title": ["routing.default", "routing.models.completion", "routing.fallback.chat",
    "chat.effort"],
  "usage.title": ["caps.usd_per_day", "caps.usd_per_conversation"],
  "search.submit": ["chat.retrieval", "web.search"],
  "settings.common.privacy": ["journal.keep_days", "journal.folder_names", "memory.on"],
  "settings.common.network": ["server.port"],
};
const UNITS = { "caps.usd_per_day": "settings.dollars", "caps.usd_per_conversation":
  "settings.dollars", "journal.keep_days": "settings.days" };
const COMMON = Object.values(GROUPS).flat();
let withNames = false; // also the names that the file has

export const isCommon = (field) => COMMON.includes(field.path.join("."));

// Return the section with these settings of a form.
export function commonSection(draft) {
  const rows = (names) => names.map((name) => [name, draft.field(name.split("."))])
    .filter(([, field]) => field).map(([name, field]) => fieldRow(draft, field, wordsOf(name)));
  const element = flushSection(t("settings.common"), nameSwitch(() => element),
    Object.entries(GROUPS).map(([name, names]) => h("div", { "data-part": name },
      h("h3", {}, t(name)), rows(names))));
  element.classList.add("common");
  element.classList.toggle("with-names", withNames);
  element.dataset.part = "common";
  return element;
}

const wordsOf = (name) => ({ name: t(`setting.${name}`), about: t(`setting.${name}.about`),
  unit: UNITS[name] ? t(UNITS[name]) : null });

function nameSwitch(section) {
  const toggle = (event) => {
    withNames = event.currentTarget.checked;
    section().classList.toggle("with-names", withNames);
  };
  return h("label", { class: "row small quiet" }, h("input", { type: "checkbox", role: "switch",
    class: "switch", checked: withNames, on: { change: toggle } }), t("settings.show-names"));
}
