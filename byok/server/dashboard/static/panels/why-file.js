// Why a file is not found: what the index says of a path.

import { call } from "../api.js";
import {
  attempt, badge, breakable, button, entryForm, h, lineField, replace, section,
} from "../dom.js";
import { pairOf, t, textOr } from "../texts.js";

const SETTING = /(context\.(?:allow_secret|extensions))/u; // that an advice may name

// Return the section that explains a path: a whole one, or one below any folder.
export function whySection(signal) {
  const answer = h("div", { role: "status" });
  const path = () => field.value.trim();
  const field = lineField({ id: "index-path", name: "path", required: true, maxlength: "4096",
    class: "mono", on: { input: () => { if (!path()) replace(answer); } } });
  const look = () => attempt(answer, signal, async () => replace(answer,
    whyText(await call("index-why", { path: path() }, { signal }), (other) => {
      field.value = other;
      look();
    })));
  return section(t("index.why"),
    entryForm({ class: "inline" }, () => path() && look(),
      h("label", { for: "index-path" }, t("index.why-label")),
      field, h("div", { class: "row" }, h("button", {}, t("index.why-ask")))),
    answer);
}

// Return a line about a file that is left out, which unfolds why and what to do.
export function whyLine(file, title, signal) {
  const answer = h("div", { role: "status" });
  const explain = async (path) => replace(answer,
    whyText(await call("index-why", { path }, { signal }), explain));
  const toggle = ({ target }) => target.open && attempt(answer, signal, () => explain(file));
  return h("details", { on: { toggle } }, h("summary", {}, title), answer);
}

// `choose(path)` explains one of the files that end alike, where a path is not there.
function whyText({ path, what, reason, explanation, exists, rule, advice, cure, alike }, choose) {
  const words = rule || (reason ? textOr(`skip.${reason}`, explanation) : "");
  const tone = { indexed: "good", skipped: "warn" }[what] ?? "quiet";
  return [
    h("p", { class: "note" }, badge(exists ? "good" : "bad",
      t(exists ? "index.there" : "index.what.not there")), " ", h("code", { class: "path" }, path)),
    what === "not there" ? null : h("p", { class: "note" }, exists
      ? pairOf(badge(tone, textOr(`index.what.${what}`, what)), words)
      : reason ? t("index.would-skip", { why: words }) : t("index.still")),
    exists || !alike.length ? null : [h("p", { class: "note" }, t("index.alike")),
      h("ul", { class: "paths" }, alike.map((other) => h("li", {},
        button(breakable(other), "link path", () => choose(other)))))],
    h("p", { class: "note" }, advice.split(SETTING).map((part, place) => (place % 2
      ? h("a", { href: `#/settings/set/${part}/${encodeURIComponent(cure)}` }, part) : part))),
  ];
}
