// Whether requests are captured: until when, on every panel while that goes on, with its end; in the
// settings and in a dialog over any panel with its start.

import { call } from "./api.js";
import {
  announce, attempt, badge, button, flushSection, h, openDialog, replace,
} from "./dom.js";
import { number, time } from "./format.js";
import { follow, renderAgain } from "./refresh.js";
import { t } from "./texts.js";

// Call `show(told)` now, when a capture begins or ends and when requests end; if byok does not answer,
// the panel says so. Return `change(name, body)`, which starts or stops a capture; why that failed is
// shown in `trouble`.
function followCapture(trouble, signal, show) {
  let timer = 0;
  const ask = (name, body, background) => attempt(background ? h("div") : trouble, signal, async () => {
    clearTimeout(timer);
    const told = await call(name, body, { signal, background });
    if (told.on) timer = setTimeout(look, 1000 * told.seconds);
    show(told);
    if (!background) {
      dispatchEvent(new Event("byok-capture")); // for what else shows it
      announce(t("pair", { name: t("feature.capture"),
        value: t(told.on ? "settings.on" : "settings.off") }));
    }
  });
  const look = () => ask("capture", {}, true);
  signal.addEventListener("abort", () => clearTimeout(timer));
  addEventListener("byok-capture", look, { signal });
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
        h("span", { class: "grow" }, badge("warn", t("settings.on")), " ",
          t("capture.until", { count: number(told.kept),
            time: time(Date.now() / 1000 + told.seconds) })),
        button(t("capture.stop"), "little", async () => {
          await change("capture-stop");
          document.querySelector("h1").focus(); // the button is gone
        }, { "data-key": "capture" }))
      : null)));
  return element;
}

// Return the parts that say what a capture keeps, and that start and stop one, how that stands is in
// the line; `changed()` is called then.
function captureParts(signal, changed = () => {}) {
  const [folder, trouble] = [h("code"), h("div")];
  let isOn = false;
  const act = button(t("capture.start"), "", async () => {
    await (isOn ? change("capture-stop") : change("capture", { write: true }));
    if (!trouble.firstChild) changed();
  });
  const change = followCapture(trouble, signal, (told) => {
    isOn = told.on;
    replace(trouble);
    replace(folder, told.folder);
    replace(act, t(isOn ? "capture.stop" : "capture.start"));
  });
  const about = [h("p", { class: "quiet" }, t("capture.about"), " ", folder),
    h("p", { class: "quiet" }, t("capture.longer"), " ", h("code", {}, "byok capture on --for 2h"))];
  return { about, act, trouble };
}

// Return the part of the settings that starts and stops a capture.
export function captureSection(signal) {
  const { about, act, trouble } = captureParts(signal);
  const element = flushSection(t("feature.capture"), null,
    h("div", { class: "field setting", "data-name": "capture" },
      h("div", {}, h("strong", {}, t("capture.title")), about),
      h("div", { class: "control" }, act), trouble));
  element.dataset.part = "capture";
  return element;
}

// Let the user start a capture where they are, or stop it.
export function openCapture() {
  const left = new AbortController();
  const { about, act, trouble } = captureParts(left.signal, () => dialog.close());
  const dialog = openDialog(t("capture.title"), [about, trouble],
    (close) => [button(t("cancel"), "", close), act]);
  dialog.addEventListener("close", () => left.abort());
  act.focus();
}
