// Refreshing what panels show of the daemon's journal: when they open, on a button, and when
// requests end, at most every two seconds and never while the page is hidden.

import { attempt, button, h, replace } from "./dom.js";
import { onRequests } from "./live.js";
import { t } from "./texts.js";

// Between two refreshes; also as long as the daemon may take to write a request into the journal.
const REFRESH_GAP_MS = 2000;

// Return `pollSoon(run)`, which calls `run` once after a delay, or later when the page is visible
// again. A further call replaces the one before; without `run` it only cancels that.
export function createPoller(signal) {
  let timer = 0;
  const pollSoon = (run) => {
    clearTimeout(timer);
    if (!run || signal.aborted) return;
    timer = setTimeout(() => (document.hidden ? pollSoon(run) : run()), REFRESH_GAP_MS);
  };
  signal.addEventListener("abort", () => clearTimeout(timer));
  return pollSoon;
}

// Return what keeps a panel up to date: `refreshButton` and `reload(background)` call
// `load(options)`, which loads the panel's content and shows it, as happens when requests end.
// `runInOrder(work)` is for the work of other buttons. All of it runs one after the other; errors
// are shown in the element `errorSlot`.
export function createRefresher(load, signal) {
  const errorSlot = h("div");
  const runInOrder = createQueue(async (work) => {
    if (signal.aborted) return;
    await attempt(errorSlot, signal, async () => { await work(); replace(errorSlot); });
  });
  const reload = (background) => runInOrder(() => load({ signal, background }));
  const refreshButton = button(t("refresh"), "", () => { reload(false); });
  followRequests(() => reload(true), signal);
  return { refreshButton, reload, runInOrder, errorSlot };
}

// Return a function that calls `run(item)` for each item, one after the other.
function createQueue(run) {
  let last = Promise.resolve();
  return (item) => {
    last = last.then(() => run(item));
    return last;
  };
}

// Call `run` after requests ended or upstreams were checked, `gap` milliseconds later and apart,
// until `signal` is aborted. The rows that `onRequests` reports first are no reason to run, unless
// one has just ended: it may not be in the journal yet. When a hidden page is shown again, the
// stream starts with a reset, so that requests that ended meanwhile are not missed.
export function followRequests(run, signal, gap = REFRESH_GAP_MS) {
  let timer = 0;
  let isPending = false;
  const flush = async () => {
    isPending = false;
    if (!document.hidden) await run();
    timer = 0;
    if (isPending) schedule(); // a request ended while `run` was running
  };
  const schedule = () => {
    isPending = true;
    if (!signal.aborted) timer ||= setTimeout(flush, gap);
  };
  const hasJustEnded = (row) => row.outcome !== "open" && performance.now() - row.at < gap;
  let isFirst = true;
  onRequests(({ reset, changed }) => {
    if ((reset && !isFirst) || changed.some(hasJustEnded)) schedule();
    isFirst = false;
  }, signal);
  addEventListener("byok-upstreams", schedule, { signal });
  signal.addEventListener("abort", () => clearTimeout(timer));
}

// Call `show(options)` now and again when requests end. Later errors are shown in `container`; the
// first one is thrown.
export async function keepUpdated(show, container, signal) {
  followRequests(() => attempt(container, signal, () => show({ background: true })), signal);
  await show();
}

// Replace what is in `root` by `children`, and restore the user's state: the focus, which details
// are open, and how far tables are scrolled.
export function renderAgain(root, ...children) {
  const focusedElement = root.contains(document.activeElement) ? document.activeElement : null;
  const focusedKey = focusedElement && keyOf(focusedElement);
  const openKeys = new Set([...root.querySelectorAll("details[open]")].map(keyOf));
  const scrollByKey = new Map([...root.querySelectorAll(".scroll")]
    .map((element) => [keyOf(element), element.scrollLeft]));
  replace(root, children);
  for (const details of root.querySelectorAll("details")) {
    details.open = openKeys.has(keyOf(details));
  }
  for (const element of root.querySelectorAll(".scroll")) {
    element.scrollLeft = scrollByKey.get(keyOf(element)) ?? 0;
  }
  if (!focusedKey) return;
  const targets = root.querySelectorAll("a[href], button, summary, [tabindex]");
  [...targets].find((element) => keyOf(element) === focusedKey)?.focus({ preventScroll: true });
}

// Return what an element has in common with the one that replaces it at the next rendering.
export const keyOf = (element) => element.dataset.key ?? element.getAttribute("aria-label")
  ?? (element.tagName === "SUMMARY" ? `summary of ${keyOf(element.parentElement)}`
    : element.getAttribute("href"));
