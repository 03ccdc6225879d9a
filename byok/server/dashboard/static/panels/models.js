// Which model can do what, at which price? What is known of each, from where, what it is used
// for, and what a probe finds.

import { call } from "../api.js";
import {
  announce, attempt, badge, breakable, button, cardOrder, errorBox, facts, h, menu, openDialog,
  replace, seekField, seeking, showTools, table,
} from "../dom.js";
import { dollars, duration, number, short } from "../format.js";
import { renderAgain } from "../refresh.js";
import { costText, priceOf } from "../requests.js";
import { t, textOr } from "../texts.js";

const FEW = 20; // rows at first
const MORE = 200; // rows with each click; a search finds the others
const LATELY = 30; // days, as of "month" on the panel of Cost
const NOTHING = { cost: 0, unpriced: 0, requests: 0, failed: 0 };
const ABILITIES = ["tools", "images", "reasoning", "fill", "vectors"];
const SORTS = { price: "models.fact.price", window: "upstream.context_window", max_output: "upstream.max_tokens" };
const FACTS = { window: number, max_output: number, price: null, tools: yesNo, images: yesNo,
  thinking: yesNo };

// `#/models/TEXT` shows the models whose names have it, `#/models//update` asks about the lists.
export async function open(root, [wanted = "", what], signal) {
  const panel = new ModelsPanel(root, wanted, signal);
  await panel.load();
  if (what !== "update") return;
  history.replaceState(history.state, "", "#/models"); // neither a reload nor Back asks again
  panel.update();
}

class ModelsPanel {
  constructor(root, wanted, signal) {
    this.signal = signal;
    this.wanted = wanted.toLowerCase();
    this.can = "";
    this.sorted = { by: "", down: false }; // "" as the daemon lists them
    this.most = FEW;
    this.found = h("div", { class: "card flush" });
    this.around = h("div");
    this.about = h("p", { class: "quiet small" });
    this.count = h("span", { class: "quiet small", role: "status" });
    this.more = button(t("models.more"), "", () => this.show(this.most + MORE));
    this.order = cardOrder([["", t("models.listed")],
      ...Object.entries(SORTS).map(([name, key]) => [name, t(key)])], (name) => this.sort(name));
    showTools(this.count, button(t("models.update"), "", () => this.update()));
    replace(root, this.around,
      h("div", { class: "row filters" },
        seeking(seekField(t("models.filter"), (words) => {
          this.wanted = words.trim().toLowerCase();
          this.show();
        }, { value: wanted })),
        menu(t("models.abilities"), [["", t("models.any")],
          ...ABILITIES.map((name) => [name, t(`models.can.${name}`)])],
        (name) => { this.can = name; this.show(); }), this.order.element),
      this.found, this.more, this.about);
  }

  async load() {
    this.catalog = await call("models", {}, { signal: this.signal });
    replace(this.around, this.catalog.substitutes.map(substitute));
    replace(this.about, t("models.table", this.catalog.table),
      this.catalog.table.stale ? ` ${t("models.stale")}` : "");
    this.show();
  }

  show(most = FEW) {
    this.most = most;
    this.order.show(this.sorted);
    if (!this.catalog) return; // somebody types before it is there
    const rows = inOrder(this.catalog.models.filter(({ id, can }) =>
      id.toLowerCase().includes(this.wanted) && (!this.can || can.includes(this.can))), this.sorted);
    const shown = Math.min(rows.length, most);
    replace(this.count, t("models.count", { shown: number(shown), count: number(rows.length) }));
    renderAgain(this.found, () => replace(this.found, table(t("models.title"), this.columns(),
      rows.slice(0, most), { sorted: this.sorted, onSort: (name) => this.sort(name) })));
    this.more.hidden = shown === rows.length;
  }

  // The cheapest and the largest come first; once more turns the order round.
  sort(name) {
    const { by, down } = this.sorted;
    this.sorted = { by: name, down: by === name ? !down : name !== "price" };
    this.show();
  }

  columns() {
    const known = (name, show) => ({ title: t(SORTS[name]), sort: name, numeric: true,
      cell: (model) => valueOf(model, name, show) });
    return [
      { title: t("request.model"), lead: true, cell: (model) => [
        button(breakable(model.id), "link", () => this.open(model), { "data-key": model.id }),
        h("span", { class: "row tight" }, model.used.map((use) =>
          badge(use === "chat" ? "good" : "quiet", textOr(`purpose.${use}`, use))))] },
      { title: t("models.abilities"), cell: ({ can }) => (can.length
        ? h("span", { class: "row tight" },
          can.map((name) => h("span", { class: "tag" }, t(`models.can.${name}`)))) : "–") },
      known("window", short), known("max_output", short), known("price"),
      { title: t("models.probed"), cell: ({ probed }) => probed ?? "–" },
      { title: t("models.actions"), aside: true, cell: (model) => h("div", { class: "row tight" },
        button(t("models.probe"), "little", () => this.askProbe(model),
          { "aria-label": probeOf(model) }),
        model.used.includes("chat") || model.facts.chats === false ? null
          : useLink(model, "button little")) },
    ];
  }

  // Show each fact with where it is known from, and what the model did and cost lately.
  open(model) {
    const lately = h("div");
    const rows = Object.keys(FACTS).filter((name) => isKnown(model, name));
    openDialog(model.id, [
      lately,
      table(t("models.facts"), [
        { title: t("models.fact"), lead: true, cell: (name) => t(`models.fact.${name}`) },
        { title: t("models.value"), cell: (name) => valueOf(model, name) },
        { title: t("models.source"), cell: (name) => sourceOf(model, name,
          this.catalog.table.stale) },
      ], rows, { empty: t("models.facts.none") })],
    (close) => [button(t("close"), "", close), useLink(model, "button"),
      button(t("models.probe"), "primary", () => {
        close();
        this.askProbe(model);
      })]);
    attempt(lately, this.signal, async () => {
      const told = await call("usage", { by: "model", days: LATELY }, { signal: this.signal });
      const sums = told.rows.find(({ key }) => key === model.id) ?? (told.more ? null : NOTHING);
      if (sums) replace(lately, h("h3", {}, h("a", { href: "#/usage/month/model",
      }, t("models.lately"))), facts([
        [t("request.cost"), costText(sums)],
        [t("usage.figure.requests"), number(sums.requests)],
        [t("usage.figure.failed"), number(sums.failed)],
      ]));
    });
  }

  // Tell what a probe sends and costs; it is sent when the user agrees.
  askProbe(model) {
    const told = (plan) => h("p", {}, t("probe.plan", { count: number(plan.requests) }), " ",
      plan.dollars === null ? t("probe.unknown-price") : plan.dollars === 0 ? t("probe.free")
        : t("probe.price", { usd: dollars(plan.dollars) }));
    const done = ({ results }) => table(t("probe.results"), [
      { title: t("probe.case"), lead: true, cell: (row) => row.case },
      { title: t("probe.outcome"), cell: (row) => [badge(OUTCOMES[row.outcome] ?? "quiet",
        textOr(`probe.${row.outcome}`, row.outcome)), " ", row.detail] },
      { title: t("request.duration"), numeric: true, cell: (row) => duration(row.seconds) },
    ], results);
    this.agree(probeOf(model), "model-probe", { model: model.id },
      { told, verb: "models.probe", done });
  }

  update() {
    const told = (plan) => h("div", {}, h("p", {}, t("update.plan")),
      h("ul", {}, plan.lists.map((url) => h("li", {}, h("code", {}, url)))));
    const done = (report) => h("div", {}, h("p", {}, t("update.done",
      { models: number(report.models), new: number(report.new_count),
        changed: number(report.changed_count) })),
    Object.entries(report.failures).map(([list, why]) =>
      h("p", {}, badge("warn", list), " ", why)));
    this.agree(t("models.update"), "models-update", {}, { told, verb: "update.verb", done });
  }

  // Show what `name` would do, do it when the user agrees, and show what came of it.
  async agree(title, name, body, { told, verb, done }) {
    const content = h("div", {}, h("p", { class: "quiet" }, t("overview.loading")));
    let act = null;
    const run = async () => {
      act.disabled = true;
      replace(content, h("p", { role: "status" }, t("probe.running")));
      try {
        replace(content, done(await call(name, { ...body, write: true })));
        announce(t("probe.ended"));
        await this.load();
      } catch (error) {
        replace(content, errorBox(error));
      }
      act.remove();
    };
    const dialog = openDialog(title, content, (close) => {
      act = button(t(verb), "primary", run, { disabled: true });
      return [button(t("close"), "", close), act];
    });
    try {
      replace(content, told(await call(name, body)));
      act.disabled = false;
    } catch (error) {
      if (dialog.isConnected) replace(content, errorBox(error));
    }
  }
}

// Return the link to the settings with a model for chats that is not saved yet.
const useLink = ({ id }, kind) => h("a", { class: kind,
  href: `#/settings/set/routing.default/${encodeURIComponent(id)}`,
  "aria-label": t("pair", { name: t("models.use"), value: id }) }, t("models.use"));

const probeOf = ({ id }) => t("pair", { name: t("models.probe"), value: id });
const OUTCOMES = { yes: "good", no: "warn", refused: "warn", failed: "bad" };
const isKnown = ({ facts }, name) => facts[name] !== undefined && facts[name] !== 0;

// Return models in an order; those of which nobody knows are last in either direction.
function inOrder(models, { by, down }) {
  const unknown = down ? -Infinity : Infinity;
  const numbersOf = ({ facts }) => (by === "price"
    ? [facts.price?.input ?? unknown, facts.price?.output ?? unknown] : [facts[by] || unknown]);
  const compare = (one, other) => {
    const others = numbersOf(other);
    const at = numbersOf(one).findIndex((value, place) => value !== others[place]);
    return at < 0 ? 0 : (numbersOf(one)[at] - others[at]) * (down ? -1 : 1);
  };
  return by ? [...models].sort(compare) : models;
}

function valueOf(model, name, show = FACTS[name]) {
  if (name === "price") return priceOf(model);
  return isKnown(model, name) ? show(model.facts[name]) : t("unknown");
}

// Say who answers instead of a model that a client named and nobody knows.
function substitute({ asked, model, alias }) {
  return h("p", {}, badge("warn", t("unknown")), " ", h("code", {}, asked), " ",
    t("models.substitute"), " ", h("code", {}, model),
    alias ? [" ", t("models.alias"), " ", h("code", {}, alias), " ",
      h("a", { href: "#/settings/set/routing.aliases" }, t("editors.how"))] : null);
}

// Return where a fact is known from.
function sourceOf({ sources }, name, stale) {
  const source = sources[name] ?? "";
  const old = name === "price" && stale && source === "table" ? `, ${t("models.old")}` : "";
  return `${textOr(`source.${source}`, source)}${old}` || "–";
}

function yesNo(value) {
  return value ? t("probe.yes") : t("probe.no");
}
