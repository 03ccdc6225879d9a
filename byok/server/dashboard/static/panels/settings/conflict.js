// The file was changed by somebody else: what differs, and whose value counts.

import { button, h, table } from "../../dom.js";
import { t, textOr } from "../../texts.js";
import { written } from "./fields.js";

const fieldsOf = (form) =>
  [...form.groups, ...form.upstreams].flatMap((part) => part.fields);

// Return the settings that two forms of the file have differently.
export function differences(before, after) {
  const known = new Map(fieldsOf(before).map((field) => [field.path.join("\n"), field]));
  const there = new Map(fieldsOf(after).map((field) => [field.path.join("\n"), field]));
  return [...new Set([...known.keys(), ...there.keys()])]
    .map((key) => ({ path: key.split("\n"), before: known.get(key)?.given,
      after: there.get(key)?.given }))
    .filter((row) => JSON.stringify(row.before) !== JSON.stringify(row.after));
}

const nameOf = (name) => [textOr(`setting.${name}`, ""), " ", h("code", {}, name)];

// Return what shows the differences; `take` drops the user's own change of a setting.
export function conflictBox(draft, rows, take) {
  const write = (value) => (value === undefined ? t("settings.unset") : written(value));
  const isOf = (row) => (change) => change.path.join("\n") === row.path.join("\n");
  const mine = (row) => draft.list.find(isOf(row));
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
