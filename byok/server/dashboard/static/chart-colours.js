// How the series of a chart look: a colour of the theme, and for those who do not tell
// colours apart a pattern of its own, or a dash.

import { h } from "./dom.js";

const COUNT = 7;
const TILE = 8; // pixels
export const DASHES = [[], [7, 4], [2, 3]];

// What is drawn over a tile, in the colour of the background.
const PATTERNS = [
  [],
  [[0, 8, 8, 0], [-2, 2, 2, -2], [6, 10, 10, 6]], // rising lines
  [[0, 2, 8, 2], [0, 6, 8, 6]], // lying lines
  [[0, 0, 8, 8], [-2, 6, 2, 10], [6, -2, 10, 2]], // falling lines
  [[2, 0, 2, 8], [6, 0, 6, 8]], // standing lines
  [[0, 4, 8, 4], [4, 0, 4, 8]], // a grid
  [[3, 4, 5, 4]], // dots
];

// Return the colours of the theme in force: {surface, line, quiet, series}.
export function paletteOf() {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(`--${name}`).trim();
  const series = Array.from({ length: COUNT }, (_, index) => colour(`series-${index + 1}`));
  return { surface: colour("surface"), line: colour("line"), quiet: colour("quiet"), series };
}

// Return what the areas of a series are filled with.
export function fillOf(palette, index) {
  const scale = devicePixelRatio || 1;
  const tile = h("canvas", { width: TILE * scale, height: TILE * scale });
  const ink = tile.getContext("2d");
  ink.scale(scale, scale);
  ink.fillStyle = palette.series[index];
  ink.fillRect(0, 0, TILE, TILE);
  ink.strokeStyle = palette.surface;
  ink.lineWidth = index === PATTERNS.length - 1 ? 2 : 1;
  for (const [fromX, fromY, toX, toY] of PATTERNS[index]) {
    ink.beginPath();
    ink.moveTo(fromX, fromY);
    ink.lineTo(toX, toY);
    ink.stroke();
  }
  return ink.createPattern(tile, "repeat");
}

// Return a small picture of how a series looks.
export function swatch(kind, palette, index) {
  const scale = devicePixelRatio || 1;
  const picture = h("canvas", { class: "swatch", width: 22 * scale, height: 12 * scale });
  const ink = picture.getContext("2d");
  if (kind === "bars") {
    ink.fillStyle = fillOf(palette, index);
    ink.fillRect(0, 0, picture.width, picture.height);
    return picture;
  }
  ink.strokeStyle = palette.series[index];
  ink.lineWidth = 2 * scale;
  ink.setLineDash(DASHES[index].map((length) => length * scale));
  ink.beginPath();
  ink.moveTo(0, picture.height / 2);
  ink.lineTo(picture.width, picture.height / 2);
  ink.stroke();
  return picture;
}
