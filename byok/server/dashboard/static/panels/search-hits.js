// The hits of a search: each file with its score, what the score is made of, and lines.

import { badge, h } from "../dom.js";
import { number } from "../format.js";
import { t, textOr } from "../texts.js";

const PARTS = ["text", "name", "history", "definition"];

// Return the words that were searched for.
export function termList(terms) {
  if (!terms.length) return h("p", { class: "note" }, t("search.no-terms"));
  return h("details", {}, h("summary", {}, t("search.terms", { count: number(terms.length) })),
    h("ul", { class: "terms" }, terms.map(({ term, whole, weight }) =>
      h("li", {}, h("code", { class: "path" }, term), " ",
        h("span", { class: "quiet" }, number(weight, 2)),
        whole ? [" ", badge("quiet", t("search.whole"))] : null))));
}

export function hitList(hits) {
  if (!hits.length) return h("p", { class: "empty" }, t("search.nothing"));
  return h("ol", { class: "hits" }, hits.map(hitItem));
}

function hitItem(hit, place) {
  return h("li", {},
    h("h3", {}, `${place + 1}. `, h("code", { class: "path" }, hit.path)),
    hit.repository ? h("p", { class: "quiet" }, h("code", { class: "path" },
      [hit.repository, hit.revision.slice(0, 12)].filter(Boolean).join(" @ "))) : null,
    h("p", { class: "row" },
      h("span", {}, t("search.score"), " ", h("strong", {}, number(hit.score, 2))),
      badge("quiet", textOr(`kind.${hit.kind}`, hit.kind)),
      hit.moved_from ? badge("warn", t("search.moved", { place: number(hit.moved_from) })) : null),
    scoreParts(hit),
    hit.also.map((path) => h("p", { class: "quiet" }, t("search.also"), " ",
      h("code", { class: "path" }, path))),
    codeLines(hit));
}

// Return the sum that the score is.
function scoreParts({ reasons }) {
  const inside = PARTS.filter((name) => reasons[name])
    .map((name) => `${t(`part.${name}`)} ${number(reasons[name], 2)}`);
  const kind = reasons.kind === 1 ? "" : ` × ${t("part.kind")} ${number(reasons.kind, 2)}`;
  const sum = inside.length > 1 && kind ? `(${inside.join(" + ")})` : inside.join(" + ") || "0";
  const rest = ["cochange", "vector"].filter((name) => reasons[name])
    .map((name) => ` + ${t(`part.${name}`)} ${number(reasons[name], 2)}`);
  return h("p", { class: "quiet" }, `= ${sum}${kind}${rest.join("")}`);
}

function codeLines({ path, lines, chunks }) {
  if (!lines.length) {
    return chunks.length ? h("p", { class: "quiet" }, t("search.no-text")) : null;
  }
  let before = lines[0].number - 1;
  const rows = lines.map((line) => {
    const gap = line.number !== before + 1;
    before = line.number;
    return [gap ? h("span", { class: "gap" }, "⋯\n") : null, codeLine(line)];
  });
  return h("pre", { class: "lines", tabindex: "0", role: "region",
    "aria-label": t("search.lines-of", { path }) }, rows);
}

// A line that matches has a mark, and not only another colour.
function codeLine({ number: place, text, match }) {
  return h("span", { class: match ? "line match" : "line" },
    h("span", { class: "place" }, `${match ? "▸" : " "} ${place} `),
    h("span", { class: "path" }, text), "\n");
}
