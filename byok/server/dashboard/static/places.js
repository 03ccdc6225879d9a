// Where the user was at each entry of the browser's history, so that Back leads there.

import { keyOf } from "./refresh.js";

const MOST = 100; // entries whose places are known
const places = new Map(); // by what marks an entry: {top, key}
let marks = 0;
let current = markEntry();

history.scrollRestoration = "manual"; // a panel is filled later than browsers scroll

// Note where the user is in `main`, whose content goes. Return where they were when they
// left the entry that is shown now, null if it is new.
export function changePlace(main) {
  const active = main.contains(document.activeElement) ? document.activeElement : null;
  places.delete(current);
  places.set(current, { top: scrollY, key: active && keyOf(active) });
  if (places.size > MOST) places.delete(places.keys().next().value);
  current = markEntry();
  return places.get(current) ?? null;
}

// Lead the user to a place, unless they have gone on from `title` meanwhile.
export function restorePlace(main, { top, key }, title) {
  if (document.activeElement !== title) return;
  const targets = main.querySelectorAll("a[href], button, summary, [tabindex]");
  const found = key && [...targets].find((element) => keyOf(element) === key);
  if (found) found.focus({ preventScroll: true });
  scrollTo(0, top);
}

// Return what marks the entry of now in the browser's history; a new one gets a mark.
function markEntry() {
  const { place } = history.state ?? {};
  if (place) return place;
  const mark = `${performance.timeOrigin} ${marks++}`; // another than before a reload
  history.replaceState({ place: mark }, "");
  return mark;
}
