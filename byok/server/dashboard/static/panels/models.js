// The models of all upstreams: what is known of each, from where, and what it is used for.

import { call } from "../api.js";
import { badge, breakable, h, replace, showTools, table } from "../dom.js";
import { number, short } from "../format.js";
import { icon } from "../icons.js";
import { t, textOr } from "../texts.js";

const FEW = 20; // rows at first
const MORE = 200; // rows with each click; a search finds the others

// `#/models/TEXT` shows the models whose names have it.
export async function open(root, rest, signal) {
  const catalog = await call("catalog", {}, { signal });
  let wanted = (rest[0] ?? "").toLowerCase();
  let most = FEW;
  const found = h("div", { class: "card flush" });
  const count = h("span", { class: "quiet small", role: "status" });
  const more = h("button", { type: "button", on: { click: () => show(most + MORE) } },
    t("models.more"));
  const show = (limit) => {
    most = limit;
    const rows = catalog.models.filter((model) => model.id.toLowerCase().includes(wanted));
    const shown = Math.min(rows.length, most);
    replace(count, t("models.count", { shown: number(shown), count: number(rows.length) }));
    replace(found, table(t("models.title"), columns(catalog), rows.slice(0, most)));
    more.hidden = shown === rows.length;
  };
  const search = (event) => {
    wanted = event.target.value.trim().toLowerCase();
    show(FEW);
  };
  show(FEW);
  showTools(count);
  replace(root,
    catalog.substitutes.map(substitute),
    h("div", { class: "row" }, h("div", { class: "seeking" }, icon("search"),
      h("input", { type: "search", "aria-label": t("models.filter"),
        placeholder: t("models.filter"), value: rest[0] ?? "", autocomplete: "off",
        maxlength: "200", spellcheck: "false", on: { input: search } }))),
    found,
    more,
    h("p", { class: "quiet small" }, t("models.table", catalog.table),
      catalog.table.stale ? ` ${t("models.stale")}` : ""));
}

// Say who answers instead of a model that a client named and nobody knows.
function substitute({ asked, model, alias }) {
  return h("p", {}, badge("warn", asked), " ", t("models.substitute"), " ", h("code", {}, model),
    alias ? [" ", t("models.alias"), " ", h("code", {}, alias)] : null);
}

function columns(catalog) {
  const known = (name, show) => (model) => fact(model, name, show, catalog.table.stale);
  return [
    { title: t("request.model"), lead: true, cell: (model) =>
      [h("strong", {}, breakable(model.id)), uses(catalog, model)] },
    { title: t("models.window"), cell: known("window", short), numeric: true },
    { title: t("models.answer"), cell: known("max_output", short), numeric: true },
    { title: t("models.price"), cell: known("price", price), numeric: true },
    { title: t("models.tools"), cell: known("tools", yesNo) },
    { title: t("models.images"), cell: known("images", yesNo) },
    { title: t("models.thinking"), cell: known("thinking", yesNo) },
  ];
}

// Return a value with where it is known from.
function fact({ facts, sources }, name, show, stale) {
  const value = facts[name];
  if (value === undefined || value === 0) return h("span", { class: "quiet" }, "–");
  const source = sources[name] ?? "";
  const words = textOr(`source.${source}`, source);
  const old = name === "price" && stale && source === "table" ? `, ${t("models.old")}` : "";
  return [show(value), source ? h("small", { class: "quiet" }, ` ${words}${old}`) : null];
}

const yesNo = (value) => (value ? t("models.yes") : t("models.no"));

// Return dollars per million tokens, in and out.
function price({ input, output }) {
  if (input === 0 && output === 0) return t("free");
  const one = (value) => (value === undefined ? "?" : number(value, 4));
  return `${one(input)} / ${one(output)}`;
}

function uses(catalog, model) {
  const jobs = Object.entries(catalog.jobs).filter(([, id]) => id === model.id);
  const names = jobs.map(([job]) => badge("quiet", textOr(`purpose.${job}`, job)));
  if (catalog.default === model.id) names.unshift(badge("good", t("models.default")));
  return names.map((name) => [" ", name]);
}
