// Settings that can only be changed in the file: what each does, and the lines to write there.

import { badge, commandBox, h, withCode } from "../../dom.js";
import { aboutSetting, t } from "../../texts.js";

// Return the list of these settings. `sought` is {name, value} of a setting that the user was led to;
// its lines have that value.
export function fileOnlySection({ file, file_only: settings }, isOpen, sought) {
  const count = settings.filter(({ given }) => given.length).length;
  return h("details", { class: "card", open: isOpen, "data-part": "file" },
    h("summary", {}, t("settings.file-only"), " ",
      count ? h("span", { class: "quiet" }, t("settings.count", { count })) : null),
    h("p", { class: "quiet" }, t("settings.file-only.about")), commandBox(file, t("settings.file")),
    h("div", { class: "fields" }, settings.map((setting) =>
      fileRow(setting, setting.name === sought.name ? sought.value : ""))));
}

// Return a setting with its lines. A section must not stand in the file twice, so if it is there
// already, the lines are without it.
function fileRow({ name, description, section, has_section: isThere, lines, restart, given }, value) {
  const list = JSON.stringify([value]);
  const ownLines = value ? [`${name.split(".").at(-1)} = ${list}`] : lines;
  const text = (isThere ? ownLines : [section, ...ownLines]).join("\n");
  return h("div", { class: "field", "data-name": name, "data-about": description },
    h("div", { class: "row" }, h("strong", {}, name),
      restart ? badge("quiet", t("settings.restart")) : null),
    h("p", { class: "quiet" }, withCode(aboutSetting(name, description))),
    given.length ? h("p", {}, t("settings.file-only.set"), " ",
      given.map((path) => [h("code", {}, path), " "]), value && commandBox(list.slice(1, -1)))
      : [h("p", { class: "quiet small" }, isThere
        ? [t("settings.file-only.below"), " ", h("code", {}, section)]
        : t("settings.file-only.end")), commandBox(text, name)]);
}
