// Why a search does not find a file: what the index knows about a path.

import { call } from "../api.js";
import {
  attempt, badge, breakable, button, entryForm, h, lineField, replace, section,
} from "../dom.js";
import { pairOf, t, textOr } from "../texts.js";

const ADVISED_SETTING = /(context\.(?:allow_secret|extensions))/u; // settings that an advice may name

// Return the section that explains a path, an absolute one or one within any folder of the index.
export function whySection(signal) {
  const answer = h("div", { role: "status" });
  const path = () => field.value.trim();
  const field = lineField({ id: "index-path", name: "path", required: true, maxlength: "4096",
    class: "mono", on: { input: () => { if (!path()) replace(answer); } } });
  const explain = () => attempt(answer, signal, async () => replace(answer,
    whyText(await call("index-why", { path: path() }, { signal }), (other) => {
      field.value = other;
      explain();
    })));
  return section(t("index.why"),
    entryForm({ class: "inline" }, () => path() && explain(),
      h("label", { for: "index-path" }, t("index.why-label")),
      h("div", { class: "row" }, field, h("button", {}, t("index.why-ask")))),
    answer);
}

// Return a line about a skipped file, which opens to the reason and what to do.
export function whyLine(file, title, signal) {
  const answer = h("div", { role: "status" });
  const explain = async (path) => replace(answer,
    whyText(await call("index-why", { path }, { signal }), explain));
  const toggle = ({ target }) => target.open && attempt(answer, signal, () => explain(file));
  return h("details", { on: { toggle } }, h("summary", {}, title), answer);
}

// Return the explanation of a path. If there is no such file, files with the same end of their path
// are offered, and `choose(path)` is called with the chosen one.
function whyText({ path, what, reason, explanation, exists, rule, advice, cure, alike }, choose) {
  const reasonText = rule || (reason ? textOr(`skip.${reason}`, explanation) : "");
  const tone = { indexed: "good", skipped: "warn" }[what] ?? "quiet";
  return [
    h("p", { class: "note" }, badge(exists ? "good" : "bad",
      t(exists ? "index.there" : "index.what.not there")), " ", h("code", { class: "path" }, path)),
    what === "not there" ? null : h("p", { class: "note" }, exists
      ? pairOf(badge(tone, textOr(`index.what.${what}`, what)), reasonText)
      : reason ? t("index.would-skip", { why: reasonText }) : t("index.still")),
    exists || !alike.length ? null : [h("p", { class: "note" }, t("index.alike")),
      h("ul", { class: "paths" }, alike.map((other) => h("li", {},
        button(breakable(other), "link path", () => choose(other)))))],
    h("p", { class: "note" }, advice.split(ADVISED_SETTING).map((part, index) => (index % 2
      ? h("a", { href: `#/settings/set/${part}/${encodeURIComponent(cure)}` }, part) : part))),
  ];
}
