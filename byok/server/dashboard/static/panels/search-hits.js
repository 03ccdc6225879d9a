// The hits of a search: each file with its score, how the score was computed, and matching lines.

import { badge, bar, copyButton, emptyState, h } from "../dom.js";
import { number } from "../format.js";
import { icon } from "../icons.js";
import { t, textOr } from "../texts.js";

// The parts of a score that are summed before the sum is multiplied by the weight of the file's
// kind; "cochange" and "vector" are added after that.
const SUMMED_REASONS = ["text", "name", "history", "definition"];

// Return the list of words that were searched for, with their weights.
export function termList(terms) {
  if (!terms.length) return h("p", { class: "note" }, t("search.no-terms"));
  const words = terms.slice(0, 8).map(({ term }) => term).join(", ");
  return h("details", {}, h("summary", {}, t("search.terms"), " ",
    h("code", { class: "path" }, words, terms.length > 8 ? "…" : null)),
  h("ul", { class: "terms" }, terms.map(({ term, whole, weight }) =>
    h("li", {}, h("code", { class: "path" }, term), " ",
      h("span", { class: "quiet" }, number(weight, 2)),
      whole ? [" ", badge("quiet", t("search.whole"))] : null))));
}

// Return the cards of the hits; `names` are the names of the folders by their paths.
export function hitList(hits, names) {
  if (!hits.length) {
    return h("section", { class: "card" },
      emptyState("search", t("search.nothing"), t("search.nothing.about")));
  }
  const topScore = Math.max(...hits.map(({ score }) => score), 1e-9);
  return h("ol", { class: "hits" }, hits.map((hit) => hitCard(hit, names, topScore)));
}

function hitCard(hit, names, topScore) {
  const folder = folderOf(hit.file, names);
  const sum = scoreSum(hit.reasons);
  return h("li", { class: "card flush" },
    h("div", { class: "head" },
      h("h2", {}, icon("file"), h("code", { class: "path" }, hit.path), copyButton(hit.path)),
      h("span", { class: "row" }, folder ? h("span", { class: "tag path" }, folder) : null,
        h("span", { class: "tag" }, textOr(`kind.${hit.kind}`, hit.kind)),
        hit.moved_from
          ? badge("warn", t("search.moved", { place: number(hit.moved_from) })) : null,
        h("span", { class: "score", title: sum }, bar([["", 0, Math.max(0, hit.score / topScore)]]),
          h("span", { class: "hidden" }, t("search.score")), " ", number(hit.score, 2)))),
    codeLines(hit),
    h("details", {}, h("summary", {}, t("search.why")),
      h("p", {}, t("search.score"), " ", number(hit.score, 2), " ", sum),
      hit.repository ? h("p", {}, h("code", { class: "path" },
        [hit.repository, hit.revision.slice(0, 12)].filter(Boolean).join(" @ "))) : null,
      hit.also.map((path) => h("p", {}, t("search.also"), " ",
        h("code", { class: "path" }, path)))));
}

// Return the name of the innermost folder that contains a file, "" if none does.
function folderOf(file, names) {
  const roots = [...names.keys()].filter((root) => file?.startsWith(root));
  return names.get(roots.sort((one, other) => other.length - one.length)[0]) ?? "";
}

function scoreSum(reasons) {
  const terms = SUMMED_REASONS.filter((name) => reasons[name])
    .map((name) => `${t(`part.${name}`)} ${number(reasons[name], 2)}`);
  const kind = reasons.kind === 1 ? "" : ` × ${t("part.kind")} ${number(reasons.kind, 2)}`;
  const sum = terms.length > 1 && kind ? `(${terms.join(" + ")})` : terms.join(" + ") || "0";
  const added = ["cochange", "vector"].filter((name) => reasons[name])
    .map((name) => ` + ${t(`part.${name}`)} ${number(reasons[name], 2)}`);
  return `= ${sum}${kind}${added.join("")}`;
}

function codeLines({ path, lines, chunks }) {
  if (!lines.length) {
    return chunks.length ? h("p", { class: "quiet" }, t("search.no-text")) : null;
  }
  let previous = lines[0].number - 1;
  const rows = lines.map((line) => {
    const gap = line.number !== previous + 1;
    previous = line.number;
    return [gap ? h("span", { class: "gap" }, "⋯\n") : null, codeLine(line)];
  });
  return h("pre", { class: "lines", tabindex: "0", role: "region",
    "aria-label": t("search.lines-of", { path }) }, rows);
}

// Return a line of code; a matching one has a mark, not only another colour.
function codeLine({ number: lineNumber, text, match }) {
  return h("span", { class: match ? "line match" : "line" },
    h("span", { class: "place" }, `${match ? "▸" : " "} ${lineNumber} `),
    h("span", { class: "path" }, text), "\n");
}
