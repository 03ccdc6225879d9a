// The common settings, in words; all others are shown by their names in the file.

import { flushSection, h } from "../../dom.js";
import { t } from "../../texts.js";
import { fieldRow } from "./fields.js";

// The names of the common settings by the key of their group's title.
const GROUPS = {
  "models.title": ["routing.default", "routing.models.completion", "routing.fallback.chat",
    "chat.effort"],
  "usage.title": ["caps.usd_per_day", "caps.usd_per_conversation"],
  "search.submit": ["chat.retrieval", "web.search"],
  "settings.common.privacy": ["journal.keep_days", "journal.folder_names", "memory.on"],
  "settings.common.network": ["server.port"],
};
const UNIT_TEXTS = { "caps.usd_per_day": "settings.dollars",
  "caps.usd_per_conversation": "settings.dollars", "journal.keep_days": "settings.days" };
const COMMON = Object.values(GROUPS).flat();
let showsNames = false; // whether the names in the file are shown, too

export const isCommon = (field) => COMMON.includes(field.path.join("."));

// Return the section with the common settings; a setting that the form does not have is left out.
export function commonSection(draft) {
  const rows = (names) => names.map((name) => [name, draft.field(name.split("."))])
    .filter(([, field]) => field).map(([name, field]) => fieldRow(draft, field, wording(name)));
  const element = flushSection(t("settings.common"), namesSwitch(() => element),
    Object.entries(GROUPS).map(([name, names]) => h("div", { "data-part": name },
      h("h3", {}, t(name)), rows(names))));
  element.classList.add("common");
  element.classList.toggle("with-names", showsNames);
  element.dataset.part = "common";
  return element;
}

const wording = (name) => ({ name: t(`setting.${name}`), about: t(`setting.${name}.about`),
  unit: UNIT_TEXTS[name] ? t(UNIT_TEXTS[name]) : null });

function namesSwitch(section) {
  const toggle = (event) => {
    showsNames = event.currentTarget.checked;
    section().classList.toggle("with-names", showsNames);
  };
  return h("label", { class: "row small quiet" }, h("input", { type: "checkbox", role: "switch",
    class: "switch", checked: showsNames, on: { change: toggle } }), t("settings.show-names"));
}
