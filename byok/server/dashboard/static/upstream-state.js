// How upstreams are: whether they answer, and why not. What needs the user is counted anew when that
// has been found out.

import { call } from "./api.js";
import { attempt, dots, h, withCode } from "./dom.js";
import { clock, duration } from "./format.js";
import { pulse } from "./refresh.js";
import { problemOf } from "./requests.js";
import { pairOf, t } from "./texts.js";

// Let all who show how upstreams are look again.
export const tellUpstreams = () => dispatchEvent(new Event("byok-upstreams"));

// Return `look({body, background})`, which asks byok how upstreams are and gives them to
// `show(upstreams)`, again until byok asks none of them any more.
export function upstreamLook(show, place, signal) {
  const soon = pulse(signal);
  const look = async (options = {}, wasAsking = false) => {
    soon(null);
    const { upstreams } = await call("upstreams", options.body ?? {}, { signal, ...options });
    show(upstreams);
    if (upstreams.some(({ asking }) => asking)) {
      soon(() => attempt(place, signal, () => look({ background: true }, true)));
    } else if (wasAsking) tellUpstreams();
  };
  return look;
}

// Return how an upstream is, as a mark and in words, and since when.
export function upstreamState({ asking, failure, rest, state, since, code, what }) {
  const when = since === null ? null : t("problems.since", { time: clock(since) });
  if (asking) return { tone: "quiet", state: t("overview.asking") };
  if (rest > 0) {
    const pause = t("overview.rest", { time: duration(Math.ceil(rest)) });
    return { tone: "warn", state: h("span", { class: "warn" }, pause) };
  }
  if (state === "fails") {
    const why = failure || h("a", { href: problemOf(code) }, withCode(what || code));
    return { tone: "bad", state: [h("span", { class: "bad" }, pairOf(t("live.state.failed"), why)), " ",
      when] };
  }
  return state === "answers" ? { tone: "good", state: dots(t("overview.answers"), when) }
    : { tone: "quiet", state: t("overview.not-asked") };
}
