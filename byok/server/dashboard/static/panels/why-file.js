// Why a file is not found: what the index says of a path.

import { call } from "../api.js";
import { badge, button, errorBox, h, replace, section } from "../dom.js";
import { t, textOr } from "../texts.js";

// Return the section that explains a path; `roots()` are the folders of now.
export function whySection(roots, signal) {
  const field = h("input", { id: "index-path", name: "path", required: true, maxlength: "4096",
    autocomplete: "off", spellcheck: "false", class: "mono" });
  const answer = h("div", { role: "status" });
  const ask = async (event) => {
    event.preventDefault();
    try {
      const body = { path: wholePath(field.value.trim(), roots()) };
      replace(answer, whyText(await call("index-why", body, { signal })));
    } catch (error) {
      if (!signal.aborted) replace(answer, errorBox(error));
    }
  };
  return section(t("index.why"),
    h("form", { class: "inline", on: { submit: ask } },
      h("label", { for: "index-path" }, t("index.why-label")),
      h("div", { class: "row" }, field, button(t("index.why-ask"), "", null, { type: "submit" }))),
    answer);
}

// Return an absolute path; one without a root is meant below the only folder.
function wholePath(typed, roots) {
  if (/^([/\\]|[a-z]:)/i.test(typed) || roots.length !== 1) return typed;
  return `${roots[0]}/${typed}`;
}

function whyText({ path, what, reason, explanation }) {
  const words = reason ? textOr(`skip.${reason}`, explanation) : "";
  const tone = { indexed: "good", skipped: "warn" }[what] ?? "quiet";
  return h("p", { class: "note" }, badge(tone, textOr(`index.what.${what}`, what)), " ",
    h("code", { class: "path" }, path), words ? `: ${words}` : "");
}

// Return the short name of each folder by its path; two of the same name keep their paths.
export function shortNames(roots) {
  const last = (root) => root.split(/[/\\]/u).findLast((part) => part) ?? root;
  const names = roots.map(last);
  return new Map(roots.map((root, place) => [root,
    names.filter((name) => name === names[place]).length > 1 ? root : names[place]]));
}
