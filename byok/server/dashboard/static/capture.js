// Captures of requests: a line on every panel while one is running, with a button to stop it, and
// the parts of the settings and of a dialog that start one.

import { call } from "./api.js";
import {
  announce, attempt, badge, button, codeElement, flushSection, focusTitle, h, openDialog, replace,
} from "./dom.js";
import { number, time } from "./format.js";
import { followRequests, renderAgain } from "./refresh.js";
import { t } from "./texts.js";

// Call `show(status)` with the state of the capture now, when one starts or ends, and when requests
// end. Return `change(name, body)`, which starts or stops a capture and shows its error in
// `errorSlot`. Errors of the other requests are not shown: the panel shows that byok is away.
function followCapture(errorSlot, signal, show) {
  let timer = 0;
  const request = (name, body, background) => attempt(background ? h("div") : errorSlot, signal, async () => {
    clearTimeout(timer);
    const status = await call(name, body, { signal, background });
    if (status.on) timer = setTimeout(refresh, 1000 * status.seconds);
    show(status);
    if (!background) {
      dispatchEvent(new Event("byok-capture")); // for other parts of the page that show it
      announce(t("pair", { name: t("feature.capture"),
        value: t(status.on ? "settings.on" : "settings.off") }));
    }
  });
  const refresh = () => request("capture", {}, true);
  signal.addEventListener("abort", () => clearTimeout(timer));
  addEventListener("byok-capture", refresh, { signal });
  followRequests(refresh, signal);
  refresh();
  return (name, body) => request(name, body, false);
}

// Return the line about a running capture; it is empty while there is none.
export function captureLine(signal) {
  const element = h("div");
  const change = followCapture(element, signal, (status) =>
    renderAgain(element, status.on
      ? h("p", { class: "row capture" },
        h("a", { href: "#/settings/set/capture" }, t("feature.capture")),
        h("span", { class: "grow" }, badge("warn", t("settings.on")), " ",
          t("capture.until", { count: number(status.kept),
            time: time(Date.now() / 1000 + status.seconds) })),
        button(t("capture.stop"), "little", async () => {
          await change("capture-stop");
          focusTitle();
        }, { "data-key": "capture" }))
      : null));
  return element;
}

// Return what explains a capture (`about`), the button that starts or stops it (`toggle`), and the
// element for errors. `onChanged()` is called after a start or stop. Whether a capture is running is
// shown by the line.
function captureParts(signal, onChanged = () => {}) {
  const [folder, errorSlot] = [h("code"), h("div")];
  let isOn = false;
  const toggle = button(t("capture.start"), "", async () => {
    await (isOn ? change("capture-stop") : change("capture", { write: true }));
    if (!errorSlot.firstChild) onChanged();
  });
  const change = followCapture(errorSlot, signal, (status) => {
    isOn = status.on;
    replace(errorSlot);
    replace(folder, status.folder);
    replace(toggle, t(isOn ? "capture.stop" : "capture.start"));
  });
  const about = [h("p", { class: "quiet" }, t("capture.about"), " ", folder),
    h("p", { class: "quiet" }, t("capture.longer"), " ", codeElement("byok capture on --for 2h"))];
  return { about, act: toggle, trouble: errorSlot };
}

export function captureSection(signal) {
  const { about, act: toggle, trouble: errorSlot } = captureParts(signal);
  const element = flushSection(t("feature.capture"), null,
    h("div", { class: "field setting", "data-name": "capture" },
      h("div", {}, h("strong", {}, t("capture.title")), about),
      h("div", { class: "control" }, toggle), errorSlot));
  element.dataset.part = "capture";
  return element;
}

export function openCapture() {
  const closed = new AbortController();
  const { about, act: toggle, trouble: errorSlot } = captureParts(closed.signal, () => dialog.close());
  const dialog = openDialog(t("capture.title"), [about, errorSlot],
    (close) => [button(t("cancel"), "", close), toggle]);
  dialog.addEventListener("close", () => closed.abort());
  toggle.focus();
}
