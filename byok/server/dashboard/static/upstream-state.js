// The state of upstreams: whether they answer, and why not.

import { call } from "./api.js";
import { attempt, h, joinWithDots, withCode } from "./dom.js";
import { clock, duration } from "./format.js";
import { createPoller } from "./refresh.js";
import { problemAddress } from "./requests.js";
import { pairOf, t } from "./texts.js";

// Tell all parts of the page that show upstreams, or count problems, that their state may have
// changed.
export const announceUpstreams = () => dispatchEvent(new Event("byok-upstreams"));

// Return `look({body, background})`, which loads the upstreams and calls `show(upstreams)`, and does
// so again as long as byok is checking one of them. Later errors are shown in `container`.
export function createUpstreamLook(show, container, signal) {
  const pollSoon = createPoller(signal);
  const look = async (options = {}, wasAsking = false) => {
    pollSoon(null);
    const { upstreams } = await call("upstreams", options.body ?? {}, { signal, ...options });
    show(upstreams);
    if (upstreams.some(({ asking }) => asking)) {
      pollSoon(() => attempt(container, signal, () => look({ background: true }, true)));
    } else if (wasAsking) announceUpstreams();
  };
  return look;
}

// Return the state of an upstream as a tone and in words, with the time since when it is so.
export function upstreamState({ asking, failure, rest: cooldown, state, since, code, what }) {
  const sinceText = since === null ? null : t("problems.since", { time: clock(since) });
  if (asking) return { tone: "quiet", state: t("overview.asking") };
  if (cooldown > 0) {
    const cooldownText = t("overview.rest", { time: duration(Math.ceil(cooldown)) });
    return { tone: "warn", state: h("span", { class: "warn" }, cooldownText) };
  }
  if (state === "fails") {
    const reason = failure || h("a", { href: problemAddress(code) }, withCode(what || code));
    return { tone: "bad", state: [h("span", { class: "bad" }, pairOf(t("live.state.failed"), reason)), " ",
      sinceText] };
  }
  return state === "answers" ? { tone: "good", state: joinWithDots(t("overview.answers"), sinceText) }
    : { tone: "quiet", state: t("overview.not-asked") };
}
