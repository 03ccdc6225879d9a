// One conversation: its sums, then a turn for each request, the oldest first.

import { call } from "./api.js";
import { facts, h, replace, section, toolSection } from "./dom.js";
import { dollars, duration, number, time } from "./format.js";
import { refresher } from "./refresh.js";
import {
  askedOther, costText, endBadge, explanation, kindOf, mendList, modelOf, toolBadges,
} from "./requests.js";
import { t } from "./texts.js";

// Show a conversation; turns come in pages, the latest first, earlier ones on a button.
export async function openTimeline(root, conversation, signal) {
  const turns = new Turns(conversation, signal);
  const { button, run, attempt, trouble } = refresher((options) => turns.load(options), signal);
  turns.earlier.addEventListener("click", () => attempt(() => turns.loadEarlier()));
  replace(root,
    toolSection(t("timeline.title"),
      [h("a", { href: "#/conversations" }, t("timeline.back")), button],
      h("p", { class: "mono names" }, conversation), trouble, turns.sums),
    section(t("timeline.turns"), h("p", { class: "quiet" }, t("timeline.bar")),
      turns.earlier, turns.list));
  await run(false);
}

class Turns {
  constructor(conversation, signal) {
    this.conversation = conversation;
    this.signal = signal;
    this.seen = new Set(); // numbers of requests
    this.first = null; // the number of the earliest one
    this.longest = 0.001; // seconds of one
    this.sums = h("div");
    this.list = h("ol", { class: "turns", "aria-label": t("timeline.turns") });
    this.earlier = h("button", { type: "button", hidden: true }, t("timeline.earlier"));
  }

  async load(options) {
    const told = await call("conversation", { conversation: this.conversation }, options);
    replace(this.sums, told.sums ? sumsOf(told.sums)
      : h("p", { class: "empty" }, t("timeline.empty")));
    if (told.requests.some((request) => this.seen.has(request.number))) {
      this.list.append(...this.make(told)); // the others are there
    } else {
      this.seen.clear(); // the first time, or after more turns than a page has
      replace(this.list, this.make(told));
      this.note(told);
    }
  }

  async loadEarlier() {
    const asked = { conversation: this.conversation, before: this.first };
    const told = await call("conversation", asked, { signal: this.signal });
    const turn = this.list.firstElementChild;
    this.list.prepend(...this.make(told));
    this.note(told);
    if (!told.more) turn?.querySelector("h3").focus(); // the button is gone
  }

  // Return the turns of an answer that are not shown yet.
  make(told) {
    let end = told.previous;
    const made = [];
    for (const request of told.requests) {
      if (!this.seen.has(request.number)) made.push(turnOf(request, end, told.errors));
      this.seen.add(request.number);
      this.longest = Math.max(this.longest, request.seconds);
      end = request.started + request.seconds;
    }
    this.list.style.setProperty("--longest", this.longest);
    this.list.classList.toggle("many", this.seen.size > 200);
    return made;
  }

  note(told) {
    this.first = told.requests[0]?.number ?? null;
    this.earlier.hidden = !told.more;
  }
}

function sumsOf(sums) {
  return facts([
    [t("conversations.turns"), number(sums.requests)],
    [t("conversations.failed"), number(sums.failed)],
    [t("request.in"), number(sums.input_tokens || null)],
    [t("request.cached"), number(sums.cache_read_tokens)],
    [t("request.out"), number(sums.input_tokens ? sums.output_tokens : null)],
    [t("request.cost"), costText(sums)],
    [t("conversations.repairs"), number(sums.repairs + sums.dropped_calls)],
    [t("timeline.first"), time(sums.first)],
    [t("timeline.last"), time(sums.last)],
    [t("request.client"), sums.client],
    [t("request.model"), sums.models.join(", ")],
  ]);
}

function turnOf(request, previousEnd, errors) {
  const asked = askedOther(request);
  const failed = request.outcome === "failed";
  return h("li", { class: failed ? "turn failed" : "turn" },
    h("div", { class: "row turn-head" },
      h("h3", { tabindex: "-1" }, time(request.started), " ",
        h("span", { class: "quiet" }, kindOf(request))),
      endBadge(request),
      h("span", { class: "quiet" }, gapOf(request, previousEnd))),
    h("p", { class: "names" }, modelOf(request) || t("timeline.no-model"),
      asked ? h("span", { class: "quiet" }, ` · ${t("timeline.asked", { model: asked })}`) : null),
    barOf(request),
    h("p", { class: "quiet" }, factsOf(request).join(" · ")),
    toolBadges(request.tool_calls),
    mendList(request),
    failed ? explanation(errors[request.error]) : null);
}

function gapOf(request, previousEnd) {
  if (previousEnd === null) return "";
  const gap = request.started - previousEnd;
  return gap < 0 ? t("timeline.beside") : t("timeline.gap", { gap: duration(gap) });
}

// Return how long a turn took, as a bar; the sentence below says the same.
function barOf(request) {
  const bar = h("div", { class: "took", "aria-hidden": "true" }, h("div", { class: "whole" },
    request.first_byte === null ? null : h("div", { class: "waiting" })));
  bar.style.setProperty("--seconds", request.seconds);
  bar.style.setProperty("--first", Math.min(request.first_byte ?? 0, request.seconds));
  return bar;
}

function factsOf(request) {
  const told = [];
  if (request.first_byte !== null) {
    told.push(t("timeline.first-word", { time: duration(request.first_byte) }));
  }
  told.push(t("timeline.took", { time: duration(request.seconds) }));
  if (request.input_tokens !== null) {
    told.push(t("timeline.tokens-in", { count: number(request.input_tokens) }));
    if (request.cache_read_tokens) {
      told.push(t("timeline.tokens-cached", { count: number(request.cache_read_tokens) }));
    }
    told.push(t("timeline.tokens-out", { count: number(request.output_tokens) }));
  } else if (request.attempts) {
    told.push(t("timeline.tokens-unknown"));
  }
  if (request.model) {
    told.push(request.cost === null ? t("timeline.cost-unknown") : dollars(request.cost));
  }
  return told;
}
