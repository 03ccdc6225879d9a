// Where the user was at each entry of the browser's history, so that Back leads there.

import { keyOf } from "./refresh.js";

const MOST = 100; // entries whose places are known
const places = new Map(); // by what marks an entry: {top, key, unfolded}
let marks = 0;
let current = markEntry();
let hasGoneOn = false; // the user, since the panel was opened

history.scrollRestoration = "manual"; // a panel is filled later than browsers scroll
for (const kind of ["keydown", "pointerdown", "wheel"]) {
  addEventListener(kind, () => { hasGoneOn = true; }, { capture: true, passive: true });
}
// A link to the entry that is shown leads there again.
addEventListener("click", (event) => {
  const address = event.target.closest("#main a[href]")?.getAttribute("href");
  if (address !== location.hash || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  dispatchEvent(new Event("hashchange"));
});

// Note where the user is in `main`, whose content goes. Return where they were when they
// left the entry that is shown now, null if it is new or the same.
export function changePlace(main) {
  const active = main.contains(document.activeElement) ? document.activeElement : null;
  const before = current;
  places.delete(before);
  places.set(before, { top: scrollY, key: active && keyOf(active), unfolded: unfoldedIn(main) });
  if (places.size > MOST) places.delete(places.keys().next().value);
  current = markEntry();
  hasGoneOn = false;
  return current === before ? null : places.get(current) ?? null;
}

// Lead the user to a place, again while what stands there is still to come, unless they have gone
// on meanwhile.
export function restorePlace(main, { top, key, unfolded }, signal) {
  for (const details of main.querySelectorAll("details")) {
    details.open ||= unfolded.includes(nameOf(details));
  }
  const lead = () => {
    if (hasGoneOn) return late.disconnect();
    const targets = main.querySelectorAll("a[href], button, summary, [tabindex]");
    const found = key && [...targets].find((element) => keyOf(element) === key);
    if (found) found.focus({ preventScroll: true });
    scrollTo(0, top);
    if (scrollY === top && (found || !key)) late.disconnect();
  };
  const late = new ResizeObserver(lead);
  late.observe(main);
  signal.addEventListener("abort", () => late.disconnect());
  lead();
}

const nameOf = (details) => details.querySelector("summary").textContent;
const unfoldedIn = (main) => [...main.querySelectorAll("details[open]")].map(nameOf);

// Return what marks the entry of now in the browser's history; a new one gets a mark.
function markEntry() {
  const { place } = history.state ?? {};
  if (place) return place;
  const mark = `${performance.timeOrigin} ${marks++}`; // another than before a reload
  history.replaceState({ place: mark }, "");
  return mark;
}
