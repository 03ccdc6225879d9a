// Icons of 16 by 16 units in the colour of the text, one path each.

const NAMESPACE = "http://www.w3.org/2000/svg";
const PATHS = {
  overview: "M2.5 2.5h4.5v6H2.5zM9 2.5h4.5v3.5H9zM9 8.5h4.5v5H9zM2.5 11h4.5v2.5H2.5z",
  live: "M1.5 8h3l2-5 3 10 2-5h3",
  conversations: "M2 3h12v8H7l-3.5 2.5V11H2z",
  problems: "M8 2l6.5 11.5h-13zM8 6.5v3M8 11.5v.1",
  models: "M8 1.5l5.5 3v7L8 14.5l-5.5-3v-7zM2.5 4.5L8 7.5l5.5-3M8 7.5v7",
  usage: "M2.5 13.5v-4M6 13.5v-8M9.5 13.5v-6M13 13.5v-11",
  search: "M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10zM10.7 10.7L14 14",
  settings: "M2 4.5h6M12 4.5h2M10 2.5v4M2 11.5h2M8 11.5h6M6 9.5v4",
  index: "M2.5 2.5h11v11h-11zM2.5 6.5h11M6.5 6.5v7",
  more: "M3 8h.1M8 8h.1M13 8h.1",
  copy: "M5.5 5.5h8v8h-8zM3.5 10.5h-1v-8h8v1",
  check: "M3 8.5l3.5 3.5L13 4.5",
  cross: "M4 4l8 8M12 4l-8 8",
  plus: "M8 3v10M3 8h10",
  pause: "M5.5 3v10M10.5 3v10",
  play: "M5 3l7.5 5L5 13z",
  up: "M8 12.5v-9M4.5 7L8 3.5 11.5 7",
  down: "M8 3.5v9M4.5 9L8 12.5 11.5 9",
  clock: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM8 4.5V8l2.5 1.5",
  key: "M5.5 11.5a3 3 0 1 1 2.7-4.3H14v2.3h-1.5V11h-2V9.5H8.2a3 3 0 0 1-2.7 2z",
  file: "M4 1.5h5l3 3v10H4zM9 1.5v3h3",
};

// Return an SVG element; attributes are texts or numbers.
export function svg(tag, attributes, ...children) {
  const element = document.createElementNS(NAMESPACE, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// Return an icon by its name; screen readers skip it.
export const icon = (name) => svg("svg",
  { class: "icon", viewBox: "0 0 16 16", "aria-hidden": "true" }, svg("path", { d: PATHS[name] }));
