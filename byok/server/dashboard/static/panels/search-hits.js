// The hits of a search: each file with its score, what the score is made of, and lines.

import { badge, bar, copyButton, h, nothing } from "../dom.js";
import { number } from "../format.js";
import { icon } from "../icons.js";
import { t, textOr } from "../texts.js";

const PARTS = ["text", "name", "history", "definition"];

// Return the words that were searched for.
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

// Return the cards of files; `names` are those of the folders by their paths.
export function hitList(hits, names) {
  if (!hits.length) {
    return h("section", { class: "card" },
      nothing("search", t("search.nothing"), t("search.nothing.about")));
  }
  const most = Math.max(...hits.map(({ score }) => score), 1e-9);
  return h("ol", { class: "hits" }, hits.map((hit) => hitCard(hit, names, most)));
}

function hitCard(hit, names, most) {
  const folder = folderOf(hit.file, names);
  const sum = scoreSum(hit.reasons);
  return h("li", { class: "card flush" },
    h("div", { class: "head" },
      h("h2", {}, icon("file"), h("code", { class: "path" }, hit.path), copyButton(hit.path)),
      h("span", { class: "row" }, folder ? h("span", { class: "tag path" }, folder) : null,
        h("span", { class: "tag" }, textOr(`kind.${hit.kind}`, hit.kind)),
        hit.moved_from
          ? badge("warn", t("search.moved", { place: number(hit.moved_from) })) : null,
        h("span", { class: "score", title: sum }, bar([["", 0, Math.max(0, hit.score / most)]]),
          h("span", { class: "hidden" }, t("search.score")), " ", number(hit.score, 2)))),
    codeLines(hit),
    h("details", {}, h("summary", {}, t("search.why")),
      h("p", {}, t("search.score"), " ", number(hit.score, 2), " ", sum),
      hit.repository ? h("p", {}, h("code", { class: "path" },
        [hit.repository, hit.revision.slice(0, 12)].filter(Boolean).join(" @ "))) : null,
      hit.also.map((path) => h("p", {}, t("search.also"), " ",
        h("code", { class: "path" }, path)))));
}

// Return the name of the innermost folder that a file is in, "" for a file elsewhere.
function folderOf(file, names) {
  const roots = [...names.keys()].filter((root) => file?.startsWith(root));
  return names.get(roots.sort((one, other) => other.length - one.length)[0]) ?? "";
}

// Return the sum that the score is.
function scoreSum(reasons) {
  const inside = PARTS.filter((name) => reasons[name])
    .map((name) => `${t(`part.${name}`)} ${number(reasons[name], 2)}`);
  const kind = reasons.kind === 1 ? "" : ` × ${t("part.kind")} ${number(reasons.kind, 2)}`;
  const sum = inside.length > 1 && kind ? `(${inside.join(" + ")})` : inside.join(" + ") || "0";
  const rest = ["cochange", "vector"].filter((name) => reasons[name])
    .map((name) => ` + ${t(`part.${name}`)} ${number(reasons[name], 2)}`);
  return `= ${sum}${kind}${rest.join("")}`;
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
