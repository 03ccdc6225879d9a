// Whether requests are captured: until when, on every panel while that goes on, with its end.

import { call } from "./api.js";
import { announce, attempt, badge, button, h, replace } from "./dom.js";
import { number, time } from "./format.js";
import { follow, renderAgain } from "./refresh.js";
import { t } from "./texts.js";

// Return how a capture stands, in words.
export const captureState = (told) => [
  badge(told.on ? "warn" : "quiet", t(told.on ? "settings.on" : "settings.off")),
  told.on ? [" ", t("capture.until", { count: number(told.kept),
    time: time(Date.now() / 1000 + told.seconds) })] : null];

// Return a line that is empty while nothing is captured.
export function captureLine(signal) {
  const element = h("div");
  let timer = 0;
  const ask = (name, background) => attempt(element, signal, async () => {
    clearTimeout(timer);
    const told = await call(name, {}, { signal, background });
    if (told.on) timer = setTimeout(look, 1000 * told.seconds);
    renderAgain(element, () => replace(element, told.on
      ? h("p", { class: "row capture" }, h("a", { href: "#/settings/set/capture" }, t("feature.capture")),
        h("span", { class: "grow" }, captureState(told)),
        button(t("capture.stop"), "little", () => ask("capture-stop"), { "data-key": "capture" }))
      : null));
    if (!background) announce(t("pair", { name: t("feature.capture"), value: t("settings.off") }));
  });
  const look = () => ask("capture", true);
  signal.addEventListener("abort", () => clearTimeout(timer));
  follow(look, signal);
  look();
  return element;
}
