// The vectors of the index: whether a model makes them, how many there are, what is wrong.

import { call } from "../api.js";
import { attempt, badge, errorBox, facts, h, replace, section } from "../dom.js";
import { number } from "../format.js";
import { t, textOr } from "../texts.js";

const TONES = { complete: "good", failed: "bad", off: "quiet" };

// Return a section, and `load(background)`: it tells whether vectors are being made.
export function vectorsPart(signal) {
  const body = h("div");
  const element = section(t("index.vectors"), body);
  element.hidden = true; // until something is known of them
  const load = async (background) => {
    let isFilling = false;
    await attempt(body, signal, async () => {
      const vectors = await call("index-vectors", {}, { signal, background });
      replace(body, describe(vectors));
      isFilling = vectors.state === "filling";
    });
    element.hidden = false;
    return isFilling;
  };
  return { element, load };
}

function describe(vectors) {
  const share = vectors.chunks
    ? t("index.vectors-of", { done: number(vectors.embedded), chunks: number(vectors.chunks) })
    : null;
  return [
    vectors.error ? errorBox({ message: vectors.error }) : null,
    facts([
      [t("request.state"), badge(TONES[vectors.state] ?? "warn",
        textOr(`vectors.${vectors.state}`, vectors.state))],
      [t("request.model"), vectors.model],
      [t("index.vectors-host"), vectors.host],
      [t("index.vectors-done"), share],
      [t("index.vectors-refused"), vectors.refused ? number(vectors.refused) : null],
      [t("index.vectors-note"), vectors.note],
    ])];
}
