// Whether requests are captured: until when, on every panel while that goes on, with its end; on the
// settings with its start.

import { call } from "./api.js";
import { announce, attempt, badge, button, flushSection, h, replace } from "./dom.js";
import { number, time } from "./format.js";
import { follow, renderAgain } from "./refresh.js";
import { t } from "./texts.js";

// Return how a capture stands, in words.
const captureState = (told) => [
  badge(told.on ? "warn" : "quiet", t(told.on ? "settings.on" : "settings.off")),
  told.on ? [" ", t("capture.until", { count: number(told.kept),
    time: time(Date.now() / 1000 + told.seconds) })] : null];

// Call `show(told)` now, when a capture ends and when requests do; why that failed is shown in
// `trouble`. Return `change(name, body)`, which starts or stops a capture.
function followCapture(trouble, signal, show) {
  let timer = 0;
  const ask = (name, body, background) => attempt(trouble, signal, async () => {
    clearTimeout(timer);
    const told = await call(name, body, { signal, background });
    if (told.on) timer = setTimeout(look, 1000 * told.seconds);
    show(told);
    if (!background) {
      announce(t("pair", { name: t("feature.capture"),
        value: h("p", {}, captureState(told)).textContent }));
    }
  });
  const look = () => ask("capture", {}, true);
  signal.addEventListener("abort", () => clearTimeout(timer));
  follow(look, signal);
  look();
  return (name, body) => ask(name, body, false);
}

// Return a line that is empty while nothing is captured.
export function captureLine(signal) {
  const element = h("div");
  const change = followCapture(element, signal, (told) =>
    renderAgain(element, () => replace(element, told.on
      ? h("p", { class: "row capture" },
        h("a", { href: "#/settings/set/capture" }, t("feature.capture")),
        h("span", { class: "grow" }, captureState(told)),
        button(t("capture.stop"), "little", () => change("capture-stop"),
          { "data-key": "capture" }))
      : null)));
  return element;
}

// Return the part of the settings that starts and stops a capture.
export function captureSection(signal) {
  const [state, folder, trouble] = [h("p"), h("code"), h("div")];
  let isOn = false;
  const act = button(t("capture.start"), "", () =>
    (isOn ? change("capture-stop") : change("capture", { write: true })));
  const change = followCapture(trouble, signal, (told) => {
    isOn = told.on;
    replace(trouble);
    replace(folder, told.folder);
    replace(state, captureState(told));
    replace(act, t(isOn ? "capture.stop" : "capture.start"));
  });
  const element = flushSection(t("feature.capture"), null,
    h("div", { class: "field setting", "data-name": "capture" },
      h("div", {}, h("strong", {}, t("capture.title")),
        h("p", { class: "quiet" }, t("capture.about"), " ", folder),
        h("p", { class: "quiet" }, t("capture.longer"), " ",
          h("code", {}, "byok capture on --for 2h"))),
      h("div", { class: "control" }, state, act), trouble));
  element.dataset.part = "capture";
  return element;
}
