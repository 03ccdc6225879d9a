// The latest conversations; `#/conversations/ID` is the timeline of one.

import { call } from "../api.js";
import { badge, breakable, h, replace, table, toolSection } from "../dom.js";
import { number } from "../format.js";
import { refresher, renderAgain } from "../refresh.js";
import { costText, cut, linkTo, nameCell, timeCell, tokensOf } from "../requests.js";
import { t } from "../texts.js";
import { openTimeline } from "../timeline.js";

const COUNT = 50;
const LONGEST = 60; // characters of a model's name; the timeline has all

export async function open(root, rest, signal) {
  if (rest[0]) return openTimeline(root, rest[0], signal);
  const list = new List(signal);
  const { button, run, attempt, trouble } = refresher((options) => list.load(options), signal);
  list.more.addEventListener("click", () => attempt(() => list.loadOlder()));
  replace(root, toolSection(t("conversations.latest"), button, trouble, list.shown, list.more));
  await run(false);
}

class List {
  constructor(signal) {
    this.signal = signal;
    this.known = new Map(); // conversations by id
    this.before = null; // where older ones begin
    this.keepDays = null;
    this.shown = h("div");
    this.more = h("button", { type: "button", hidden: true }, t("conversations.older"));
  }

  async load(options) {
    const told = await call("conversations", { count: COUNT }, options);
    if (!this.known.size) this.before = told.before;
    this.keepDays = told.keep_days;
    for (const one of told.conversations) this.known.set(one.conversation, one);
    this.show();
  }

  async loadOlder() {
    const asked = { count: COUNT, before: this.before };
    const told = await call("conversations", asked, { signal: this.signal });
    this.before = told.before;
    for (const one of told.conversations) {
      // One that went on meanwhile is known as it is now.
      if (!this.known.has(one.conversation)) this.known.set(one.conversation, one);
    }
    this.show();
  }

  show() {
    const rows = [...this.known.values()].sort((one, other) => other.last - one.last);
    const empty = t(this.keepDays === 0 ? "journal.off" : "conversations.empty");
    renderAgain(this.shown, () => replace(this.shown,
      table(t("conversations.latest"), columns(), rows, { empty })));
    this.more.hidden = this.before === null;
  }
}

function columns() {
  return [
    { title: t("conversations.last"), cell: (one) => timeCell(one.last) },
    { title: t("conversations.id"), cell: (one) => linkTo(one.conversation) },
    { title: t("request.client"), cell: (one) => nameCell(one.client) },
    { title: t("request.model"), cell: models },
    { title: t("conversations.turns"), numeric: true, cell: (one) => number(one.requests) },
    { title: t("request.tokens"), numeric: true,
      cell: tokensOf },
    { title: t("request.cost"), numeric: true, cell: costText },
    { title: t("conversations.failed"), numeric: true, cell: (one) => count(one.failed, "bad") },
    { title: t("conversations.repairs"), numeric: true,
      cell: (one) => count(one.repairs + one.dropped_calls, "warn") },
  ];
}

const count = (found, tone) => (found ? badge(tone, number(found)) : number(0));

function models(one) {
  const [first = "", ...others] = one.models;
  return [h("span", { class: "names" }, breakable(cut(first, LONGEST) || "–")),
    others.length ? t("conversations.models", { count: number(others.length) }) : null];
}
