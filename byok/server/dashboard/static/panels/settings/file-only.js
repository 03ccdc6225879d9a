// The settings that are changed in the file only: what each does, and the lines to write there.

import { badge, command, h, withCode } from "../../dom.js";
import { aboutSetting, t } from "../../texts.js";

// Return the part that lists them; the lines of one setting are `wanted`, {name, value}, where somebody
// was led to it for that.
export function fileOnly({ file, file_only: settings }, isOpen, wanted) {
  const count = settings.filter(({ given }) => given.length).length;
  return h("details", { class: "card", open: isOpen, "data-part": "file" },
    h("summary", {}, t("settings.file-only"), " ",
      count ? h("span", { class: "quiet" }, t("settings.count", { count })) : null),
    h("p", { class: "quiet" }, t("settings.file-only.about")), command(file, t("settings.file")),
    h("div", { class: "fields" }, settings.map((one) =>
      fileRow(one, one.name === wanted.name ? wanted.value : ""))));
}

// A section may stand in the file once, so below one that is there goes the line alone.
function fileRow({ name, description, section, has_section: isThere, lines, restart, given }, value) {
  const list = JSON.stringify([value]);
  const own = value ? [`${name.split(".").at(-1)} = ${list}`] : lines;
  const text = (isThere ? own : [section, ...own]).join("\n");
  return h("div", { class: "field", "data-name": name, "data-about": description },
    h("div", { class: "row" }, h("strong", {}, name),
      restart ? badge("quiet", t("settings.restart")) : null),
    h("p", { class: "quiet" }, withCode(aboutSetting(name, description))),
    given.length ? h("p", {}, t("settings.file-only.set"), " ",
      given.map((path) => [h("code", {}, path), " "]), value && command(list.slice(1, -1)))
      : [h("p", { class: "quiet small" }, isThere
        ? [t("settings.file-only.below"), " ", h("code", {}, section)]
        : t("settings.file-only.end")), command(text, name)]);
}
