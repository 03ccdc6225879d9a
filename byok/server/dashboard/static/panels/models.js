// The models: what each can do, at which price, what it is used for, from where these facts are
// known, and probes of models.

import { call } from "../api.js";
import {
  announce, attempt, badge, breakable, button, cardSorter, errorBox, factList, h, menu, openDialog,
  replace, searchBox, searchField, showTools, table,
} from "../dom.js";
import { dollars, duration, number, shortNumber } from "../format.js";
import { setAddress } from "../places.js";
import { renderAgain } from "../refresh.js";
import { costText, priceOf } from "../requests.js";
import { t, textOr } from "../texts.js";

const FIRST_ROWS = 20;
const NEXT_ROWS = 200; // that each click adds; a search finds the others
const RECENT_DAYS = 30; // as "month" on the panel Cost
const NO_USAGE = { cost: 0, unpriced: 0, requests: 0, failed: 0 };
const ABILITIES = ["tools", "images", "reasoning", "fill", "vectors"];
const OUTCOME_TONES = { yes: "good", no: "warn", refused: "warn", failed: "bad" };
const SORTS = { price: "models.fact.price", window: "upstream.context_window",
  max_output: "upstream.max_tokens" };
// The facts of a model, and how the value of each is formatted; `priceOf` formats the price.
const FACTS = { window: number, max_output: number, price: null, tools: yesNo, images: yesNo,
  thinking: yesNo };

// `#/models/TEXT` shows the models with that text in their names, `#/models//update` offers to update
// the lists of models.
export async function open(root, [words = "", action], signal) {
  const panel = new ModelsPanel(root, words, signal);
  await panel.load();
  if (action !== "update") return;
  setAddress("#/models"); // so that neither a reload nor Back asks again
  panel.update();
}

class ModelsPanel {
  constructor(root, words, signal) {
    this.signal = signal;
    this.words = words.toLowerCase();
    this.ability = "";
    this.sorted = { by: "", down: false }; // "" is the order of the daemon
    this.rowCount = FIRST_ROWS;
    this.list = h("div", { class: "card flush" });
    this.substitutes = h("div");
    this.tableNote = h("p", { class: "quiet small" });
    this.count = h("span", { class: "quiet small", role: "status" });
    this.moreButton = button(t("models.more"), "", () => this.show(this.rowCount + NEXT_ROWS));
    this.sorter = cardSorter([["", t("models.listed")],
      ...Object.entries(SORTS).map(([name, key]) => [name, t(key)])], (name) => this.sort(name));
    showTools(this.count, button(t("models.update"), "", () => this.update()));
    replace(root, this.substitutes,
      h("div", { class: "row filters" },
        searchBox(searchField(t("models.filter"), (inputWords) => {
          this.words = inputWords.trim().toLowerCase();
          this.show();
        }, { value: words })),
        menu(t("models.abilities"), [["", t("models.any")],
          ...ABILITIES.map((name) => [name, t(`models.can.${name}`)])],
        (name) => { this.ability = name; this.show(); }), this.sorter.element),
      this.list, this.moreButton, this.tableNote);
  }

  async load() {
    this.catalog = await call("models", {}, { signal: this.signal });
    replace(this.substitutes, this.catalog.substitutes.map(substituteNote));
    replace(this.tableNote, t("models.table", this.catalog.table),
      this.catalog.table.stale ? ` ${t("models.stale")}` : "");
    this.show();
  }

  show(rowCount = FIRST_ROWS) {
    this.rowCount = rowCount;
    this.sorter.show(this.sorted);
    if (!this.catalog) return; // the user types before it is loaded
    const matches = this.catalog.models.filter(({ id, can }) =>
      id.toLowerCase().includes(this.words) && (!this.ability || can.includes(this.ability)));
    const rows = sortModels(matches, this.sorted);
    const shownCount = Math.min(rows.length, rowCount);
    replace(this.count, t("models.count", { shown: number(shownCount), count: number(rows.length) }));
    renderAgain(this.list, table(t("models.title"), this.columns(),
      rows.slice(0, rowCount), { sorted: this.sorted, onSort: (name) => this.sort(name) }));
    this.moreButton.hidden = shownCount === rows.length;
  }

  // Sort by a column, the cheapest or the largest first; a second call reverses the order.
  sort(name) {
    const { by, down } = this.sorted;
    this.sorted = { by: name, down: by === name ? !down : name !== "price" };
    this.show();
  }

  columns() {
    const factColumn = (name, format) => ({ title: t(SORTS[name]), sort: name, numeric: true,
      cell: (model) => valueOf(model, name, format) });
    return [
      { title: t("request.model"), lead: true, cell: (model) => [
        button(breakable(model.id), "link", () => this.open(model), { "data-key": model.id }),
        h("span", { class: "row tight" }, model.used.map((use) =>
          badge(use === "chat" ? "good" : "quiet", textOr(`purpose.${use}`, use))))] },
      { title: t("models.abilities"), cell: ({ can }) => (can.length
        ? h("span", { class: "row tight" },
          can.map((name) => h("span", { class: "tag" }, t(`models.can.${name}`)))) : "–") },
      factColumn("window", shortNumber), factColumn("max_output", shortNumber), factColumn("price"),
      { title: t("models.probed"), cell: ({ probed }) => probed ?? "–" },
      { title: t("models.actions"), aside: true, cell: (model) => h("div", { class: "row tight" },
        button(t("models.probe"), "little", () => this.askProbe(model),
          { "aria-label": probeTitle(model) }),
        model.used.includes("chat") || model.facts.chats === false ? null
          : useModelLink(model, "button little")) },
    ];
  }

  // Show in a dialog a model's facts with their sources, and its recent use and cost.
  open(model) {
    const recentUse = h("div");
    const rows = Object.keys(FACTS).filter((name) => isKnown(model, name));
    openDialog(model.id, [
      recentUse,
      table(t("models.facts"), [
        { title: t("models.fact"), lead: true, cell: (name) => t(`models.fact.${name}`) },
        { title: t("models.value"), cell: (name) => valueOf(model, name) },
        { title: t("models.source"), cell: (name) => sourceOf(model, name,
          this.catalog.table.stale) },
      ], rows, { empty: t("models.facts.none") })],
    (close) => [button(t("close"), "", close), useModelLink(model, "button"),
      button(t("models.probe"), "primary", () => {
        close();
        this.askProbe(model);
      })]);
    attempt(recentUse, this.signal, async () => {
      const usage = await call("usage", { by: "model", days: RECENT_DAYS }, { signal: this.signal });
      const sums = usage.rows.find(({ key }) => key === model.id) ?? (usage.more ? null : NO_USAGE);
      if (sums) replace(recentUse, h("h3", {}, h("a", { href: "#/usage/month/model",
      }, t("models.lately"))), factList([
        [t("request.cost"), costText(sums)],
        [t("usage.figure.requests"), number(sums.requests)],
        [t("usage.figure.failed"), number(sums.failed)],
      ]));
    });
  }

  // Show what a probe of a model sends and costs, and send it if the user agrees.
  askProbe(model) {
    const describePlan = (plan) => h("p", {}, t("probe.plan", { count: number(plan.requests) }), " ",
      plan.dollars === null ? t("probe.unknown-price") : plan.dollars === 0 ? t("probe.free")
        : t("probe.price", { usd: dollars(plan.dollars) }));
    const describeResult = ({ results }) => table(t("probe.results"), [
      { title: t("probe.case"), lead: true, cell: (row) => row.case },
      { title: t("probe.outcome"), cell: (row) => [badge(OUTCOME_TONES[row.outcome] ?? "quiet",
        textOr(`probe.${row.outcome}`, row.outcome)), " ", row.detail] },
      { title: t("request.duration"), numeric: true, cell: (row) => duration(row.seconds) },
    ], results);
    this.runWithConsent(probeTitle(model), "model-probe", { model: model.id },
      { describePlan, verb: "models.probe", describeResult });
  }

  update() {
    const describePlan = (plan) => h("div", {}, h("p", {}, t("update.plan")),
      h("ul", {}, plan.lists.map((url) => h("li", {}, h("code", {}, url)))));
    const describeResult = (report) => h("div", {}, h("p", {}, t("update.done",
      { models: number(report.models), new: number(report.new_count),
        changed: number(report.changed_count) })),
    Object.entries(report.failures).map(([list, reason]) =>
      h("p", {}, badge("warn", list), " ", reason)));
    this.runWithConsent(t("models.update"), "models-update", {},
      { describePlan, verb: "update.verb", describeResult });
  }

  // Show what an endpoint would do, call it if the user agrees, and show its result. `verb` is the
  // key of the button's text.
  async runWithConsent(title, endpoint, body, { describePlan, verb, describeResult }) {
    const content = h("div", {}, h("p", { class: "quiet" }, t("overview.loading")));
    let agreeButton = null;
    const run = async () => {
      agreeButton.disabled = true;
      replace(content, h("p", { role: "status" }, t("probe.running")));
      try {
        replace(content, describeResult(await call(endpoint, { ...body, write: true })));
        announce(t("probe.ended"));
        await this.load();
      } catch (error) {
        replace(content, errorBox(error));
      }
      agreeButton.remove();
    };
    const dialog = openDialog(title, content, (close) => {
      agreeButton = button(t(verb), "primary", run, { disabled: true });
      return [button(t("close"), "", close), agreeButton];
    });
    try {
      replace(content, describePlan(await call(endpoint, body)));
      agreeButton.disabled = false;
    } catch (error) {
      if (dialog.isConnected) replace(content, errorBox(error));
    }
  }
}

// Return the link that enters a model for chats into the settings, to be saved there.
const useModelLink = ({ id }, kind) => h("a", { class: kind,
  href: `#/settings/set/routing.default/${encodeURIComponent(id)}`,
  "aria-label": t("pair", { name: t("models.use"), value: id }) }, t("models.use"));

const probeTitle = ({ id }) => t("pair", { name: t("models.probe"), value: id });
const isKnown = ({ facts }, name) => facts[name] !== undefined && facts[name] !== 0;

// Return models in an order; those whose value is unknown are last in either direction.
function sortModels(models, { by, down }) {
  const unknown = down ? -Infinity : Infinity;
  const numbersOf = ({ facts }) => (by === "price"
    ? [facts.price?.input ?? unknown, facts.price?.output ?? unknown] : [facts[by] || unknown]);
  const compare = (one, other) => {
    const otherNumbers = numbersOf(other);
    const index = numbersOf(one).findIndex((value, position) => value !== otherNumbers[position]);
    return index < 0 ? 0 : (numbersOf(one)[index] - otherNumbers[index]) * (down ? -1 : 1);
  };
  return by ? [...models].sort(compare) : models;
}

function valueOf(model, name, format = FACTS[name]) {
  if (name === "price") return priceOf(model);
  return isKnown(model, name) ? format(model.facts[name]) : t("unknown");
}

// Return a note about the model that answers instead of an unknown one that a client named.
function substituteNote({ asked: requested, model, alias }) {
  return h("p", {}, badge("warn", t("unknown")), " ", h("code", {}, requested), " ",
    t("models.substitute"), " ", h("code", {}, model),
    alias ? [" ", t("models.alias"), " ", h("code", {}, alias), " ",
      h("a", { href: "#/settings/set/routing.aliases" }, t("editors.how"))] : null);
}

function sourceOf({ sources }, name, stale) {
  const source = sources[name] ?? "";
  const staleNote = name === "price" && stale && source === "table" ? `, ${t("models.old")}` : "";
  return `${textOr(`source.${source}`, source)}${staleNote}` || "–";
}

function yesNo(value) {
  return value ? t("probe.yes") : t("probe.no");
}
