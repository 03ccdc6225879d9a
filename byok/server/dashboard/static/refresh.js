// Panels that show what the daemon noted: loaded when they open, on a button, and when
// requests end, at most every two seconds and never while nobody looks.

import { attempt, button, h, replace } from "./dom.js";
import { onRequests } from "./live.js";
import { t } from "./texts.js";

// Also the time that the daemon may take to write a request down.
const GAP = 2000;

// Return `soon(run)`: it calls `run` after a while, when somebody sees the page, unless `signal` is
// aborted or `soon` is called again meanwhile; without `run` it calls nothing.
export function pulse(signal) {
  let timer = 0;
  const soon = (run) => {
    clearTimeout(timer);
    if (run && !signal.aborted) timer = setTimeout(() => (document.hidden ? soon(run) : run()), GAP);
  };
  signal.addEventListener("abort", () => clearTimeout(timer));
  return soon;
}

// Return a button, `refresh`, that loads anew, and `run(background)`, which does so too; it also
// happens when requests end. `load(options)` asks and shows. `attempt(work)` is for what
// other buttons do; one thing happens after the other. What fails is shown in `trouble`, an
// element for the panel.
export function refresher(load, signal) {
  const trouble = h("div");
  const inOrder = inTurn(async (work) => {
    if (signal.aborted) return;
    await attempt(trouble, signal, async () => { await work(); replace(trouble); });
  });
  const run = (background) => inOrder(() => load({ signal, background }));
  const refresh = button(t("refresh"), "little", () => { run(false); });
  follow(() => run(true), signal);
  return { refresh, run, attempt: inOrder, trouble };
}

// Return a function that does one thing after the other.
function inTurn(work) {
  let last = Promise.resolve();
  return (one) => {
    last = last.then(() => work(one));
    return last;
  };
}

// Call `run` some time after requests ended, or byok has asked upstreams, `gap` milliseconds apart
// at least, until `signal` is aborted. What is told at once was there before; but what ended just
// now is perhaps not written down. Who comes back to the page is told everything anew, so what
// ended while it was hidden is not lost.
export function follow(run, signal, gap = GAP) {
  let timer = 0;
  let isNews = false;
  const go = async () => {
    isNews = false;
    if (!document.hidden) await run();
    timer = 0;
    if (isNews) wait(); // something ended while it ran
  };
  const wait = () => {
    isNews = true;
    if (!signal.aborted) timer ||= setTimeout(go, gap);
  };
  const isNew = (row) => row.outcome !== "open" && performance.now() - row.at < gap;
  let isFirst = true;
  onRequests(({ reset, changed }) => {
    if ((reset && !isFirst) || changed.some(isNew)) wait();
    isFirst = false;
  }, signal);
  addEventListener("byok-upstreams", wait, { signal });
  signal.addEventListener("abort", () => clearTimeout(timer));
}

// Show something in `place`, and again when requests end.
export async function keepShown(show, place, signal) {
  follow(() => attempt(place, signal, () => show({ background: true })), signal);
  await show();
}

// Change what is inside `root` by `render()`, and keep what the user is at: the focus, what
// is folded out and how far tables are scrolled.
export function renderAgain(root, render) {
  const active = root.contains(document.activeElement) ? document.activeElement : null;
  const focused = active && keyOf(active);
  const unfolded = new Set([...root.querySelectorAll("details[open]")].map(keyOf));
  const scrolled = new Map([...root.querySelectorAll(".scroll")]
    .map((element) => [keyOf(element), element.scrollLeft]));
  render();
  for (const details of root.querySelectorAll("details")) {
    details.open = unfolded.has(keyOf(details));
  }
  for (const element of root.querySelectorAll(".scroll")) {
    element.scrollLeft = scrolled.get(keyOf(element)) ?? 0;
  }
  if (!focused) return;
  const targets = root.querySelectorAll("a[href], button, summary, [tabindex]");
  [...targets].find((element) => keyOf(element) === focused)?.focus({ preventScroll: true });
}

// What an element has in common with the one that takes its place.
export const keyOf = (element) => element.dataset.key ?? element.getAttribute("aria-label")
  ?? (element.tagName === "SUMMARY" ? `summary of ${keyOf(element.parentElement)}`
    : element.getAttribute("href"));
