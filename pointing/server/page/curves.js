// Curves from source words to the output words that came from them.

import { svgElement } from "./text.js";

/** Draws a curve for each link into an SVG element that covers `frame`. */
export function drawCurves(svg, frame, links) {
  const box = frame.getBoundingClientRect();
  svg.setAttribute("viewBox", `0 0 ${box.width} ${box.height}`);
  svg.replaceChildren(...links.flatMap(({ index, from, to }) => {
    const start = bottomOf(from, box);
    const end = topOf(to, box);
    const pull = Math.max(18, 0.55 * (end.y - start.y)); // how far the curve goes straight down before it turns
    const path = `M ${start.x} ${start.y} C ${start.x} ${start.y + pull} ${end.x} ${end.y - pull} ${end.x} ${end.y}`;
    const kind = [...to.classList].filter((name) => name !== "word" && name !== "lit").join(" ");
    const lit = to.classList.contains("lit") ? " lit" : "";
    return [
      svgElement("path", { d: path, class: `curve ${kind}${lit}`, "data-index": index, fill: "none" }),
      svgElement("circle", { cx: start.x, cy: start.y, r: 3, class: `curve-start ${kind}${lit}`, "data-index": index }),
    ];
  }));
}

/** The middle of the lower side of a word; of a word that is broken over two lines, of its last part. */
function bottomOf(word, box) {
  const parts = word.getClientRects();
  const part = parts[parts.length - 1] ?? word.getBoundingClientRect();
  return { x: round(part.left + part.width / 2 - box.left), y: round(part.bottom - box.top + 2) };
}

/** The middle of the upper side of a word's text: under its switch, which the curve goes through. */
function topOf(word, box) {
  const text = word.querySelector(".word-text").getBoundingClientRect();
  return { x: round(text.left + text.width / 2 - box.left), y: round(text.top - box.top) };
}

function round(value) {
  return Math.round(10 * value) / 10;
}
