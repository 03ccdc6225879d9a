// Where the user was at each entry of the browser's history, so that Back leads there: how far the
// page was scrolled, what had the focus, and which details were open.

import { keyOf } from "./refresh.js";

const MAX_ENTRIES = 100; // whose positions are stored
const positions = new Map(); // by mark of an entry: {top, key, unfolded}
let markCount = 0;
let current = markEntry();
let hasUserActed = false; // since the panel was opened

history.scrollRestoration = "manual"; // a panel is filled later than browsers scroll
for (const kind of ["keydown", "pointerdown", "wheel"]) {
  addEventListener(kind, () => { hasUserActed = true; }, { capture: true, passive: true });
}
// A link to the address that is shown opens its panel again.
addEventListener("click", (event) => {
  const address = event.target.closest("#main a[href]")?.getAttribute("href");
  if (address !== location.hash || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  dispatchEvent(new Event("hashchange"));
});

// Store where the user is in `main`, whose content will be replaced. Return the position at which
// they left the entry that is current now, null if the entry is new or has not changed.
export function switchEntry(main) {
  const focused = main.contains(document.activeElement) ? document.activeElement : null;
  const previous = current;
  positions.delete(previous);
  positions.set(previous, { top: scrollY, key: focused && keyOf(focused), unfolded: unfoldedIn(main) });
  if (positions.size > MAX_ENTRIES) positions.delete(positions.keys().next().value);
  current = markEntry();
  hasUserActed = false;
  return current === previous ? null : positions.get(current) ?? null;
}

// Lead the user to a position, again as content arrives until it is reached, unless they have
// acted meanwhile.
export function restorePosition(main, { top, key, unfolded }, signal) {
  for (const details of main.querySelectorAll("details")) {
    details.open ||= unfolded.includes(summaryOf(details));
  }
  const restore = () => {
    if (hasUserActed) return observer.disconnect();
    const targets = main.querySelectorAll("a[href], button, summary, [tabindex]");
    const target = key && [...targets].find((element) => keyOf(element) === key);
    if (target) target.focus({ preventScroll: true });
    scrollTo(0, top);
    if (scrollY === top && (target || !key)) observer.disconnect();
  };
  const observer = new ResizeObserver(restore);
  observer.observe(main);
  signal.addEventListener("abort", () => observer.disconnect());
  restore();
}

// Change the address of the current entry, so that Back, a reload or a change of language, and a
// copied link, show the same.
export const setAddress = (address) => history.replaceState(history.state, "", address);

const summaryOf = (details) => details.querySelector("summary").textContent;
const unfoldedIn = (main) => [...main.querySelectorAll("details[open]")].map(summaryOf);

// Return the mark of the current entry of the browser's history; a new entry gets one.
function markEntry() {
  const { place: known } = history.state ?? {};
  if (known) return known;
  const mark = `${performance.timeOrigin} ${markCount++}`; // differs from those before a reload
  history.replaceState({ place: mark }, "");
  return mark;
}
