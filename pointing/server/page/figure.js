// The figure: source words above, output words below, the switch over each of them, and curves from copy to source.

import { drawCurves } from "./curves.js";
import { element, languageTag, partsOf, percent, visible } from "./text.js";
import { UNKNOWN, description, kindOf, pointsAtSource } from "./words.js";

const FAINT = 0.01; // attention below this is not shown

const figure = document.getElementById("figure");
const sourceLine = document.getElementById("source");
const outputLine = document.getElementById("output");
const curves = figure.querySelector(".curves");

let words = []; // a button for each output word that has a place in the text; null for the others
let sources = []; // an element for each source word
let shown = null; // the output, as `showFigure` got it
let onWord = () => {}; // called with the index of the word that is looked at, or null
let lit = null; // the index of that word
let pinned = null; // the index of the word that was clicked on

/** Calls `listener` with the index of the word that is pointed at or focused, or null. */
export function listenToWords(listener) {
  onWord = listener;
}

/** Shows an output of a source text. `languages` are those of both, if they are known. */
export function showFigure(output, source, kept, languages = []) {
  shown = { output, source };
  lit = pinned = null;
  figure.classList.remove("has-lit");
  setLanguage(sourceLine, languages[0]);
  setLanguage(outputLine, languages[1]);
  showSource(output, source, kept);
  showOutput(output, source, kept);
  draw();
}

function setLanguage(line, language) {
  const tag = languageTag(language);
  if (tag) line.lang = tag;
  else line.removeAttribute("lang");
}

function showSource(output, source, kept) {
  const kinds = new Map(); // of the source words that an output word came from
  for (const token of output.tokens) {
    if (pointsAtSource(token)) kinds.set(token.source, kindOf(token, source.text, kept));
  }
  sources = source.tokens.map(() => null);
  const parts = partsOf(source.text, source.tokens.map((token) => token.span));
  sourceLine.replaceChildren(...parts.map(([text, index]) => {
    if (index === null) return visible(text);
    const used = kinds.has(index) ? ` used ${kinds.get(index)}` : "";
    const guarded = source.tokens[index].protected ? " protected" : "";
    sources[index] = element("span", { class: `source-word${used}${guarded}`, "data-position": index }, visible(text));
    return sources[index];
  }));
}

function showOutput(output, source, kept) {
  words = output.tokens.map(() => null);
  const parts = partsOf(output.text, output.tokens.map((token) => token.output));
  outputLine.replaceChildren(...parts.map(([text, index]) => {
    if (index === null) return visible(text);
    words[index] = wordButton(text, output.tokens[index], index, source, kept);
    return words[index];
  }));
}

/** A word as a button: the switch's bar on top, full where the word is from the shortlist, and the text. */
function wordButton(text, token, index, source, kept) {
  const kind = token.text === UNKNOWN ? "unknown" : kindOf(token, source.text, kept);
  const bar = element("span", { class: "switch", "aria-hidden": "true" });
  if (typeof token.shortlist === "number") {
    const level = element("span", { class: "level" });
    level.style.height = `${100 * token.shortlist}%`;
    bar.append(level);
  } else bar.classList.add("none");
  return element(
    "button",
    {
      type: "button",
      class: `word ${kind}`,
      "data-index": index,
      "data-origin": token.origin,
      "aria-pressed": "false",
      "aria-description": description(token, kind, source.text),
    },
    bar,
    element("span", { class: "word-text" }, visible(text)),
  );
}

/** Lights a word, its curve, and the source words that the model looked at; with null, nothing is lit. */
export function light(index) {
  if (index === lit) return;
  lit = index;
  figure.classList.toggle("has-lit", index !== null);
  words.forEach((word, at) => word?.classList.toggle("lit", at === index));
  for (const path of curves.querySelectorAll("[data-index]")) {
    path.classList.toggle("lit", Number(path.dataset.index) === index);
  }
  const token = index === null ? null : shown.output.tokens[index];
  sources.forEach((word, position) => {
    if (!word) return;
    const weight = token?.location?.[position] ?? 0;
    word.style.setProperty("--light", weight >= FAINT ? weight : 0);
    word.classList.toggle("lit", token !== null && token.source === position);
    if (weight >= FAINT) word.title = `attention ${percent(weight)}`;
    else word.removeAttribute("title");
  });
  onWord(index);
}

function draw() {
  if (!shown) return;
  const links = shown.output.tokens.flatMap((token, index) => {
    const from = pointsAtSource(token) ? sources[token.source] : null;
    return from && words[index] ? [{ index, from, to: words[index] }] : [];
  });
  drawCurves(curves, figure, links);
}

function indexOf(event) {
  const word = event.target.closest?.(".word");
  return word ? Number(word.dataset.index) : null;
}

function focusedIndex() {
  const word = document.activeElement?.closest?.("#output .word");
  return word ? Number(word.dataset.index) : null;
}

outputLine.addEventListener("mouseover", (event) => light(indexOf(event) ?? lit));
figure.addEventListener("mouseleave", () => light(focusedIndex() ?? pinned));
outputLine.addEventListener("focusin", (event) => light(indexOf(event)));
outputLine.addEventListener("focusout", () => light(pinned));
outputLine.addEventListener("click", (event) => {
  const index = indexOf(event);
  if (index !== null) pin(index === pinned ? null : index);
});

/** Keeps a word lit when the pointer and the focus leave it. */
function pin(index) {
  pinned = index;
  words.forEach((word, at) => word?.setAttribute("aria-pressed", String(at === index)));
}

// Arrow keys go from word to word, in the direction of the text.
outputLine.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    pin(null);
    light(null);
  }
  const buttons = words.filter(Boolean);
  const at = buttons.indexOf(document.activeElement);
  const forward = getComputedStyle(outputLine).direction === "rtl" ? "ArrowLeft" : "ArrowRight";
  const backward = forward === "ArrowLeft" ? "ArrowRight" : "ArrowLeft";
  const next = { [forward]: at + 1, [backward]: at - 1, Home: 0, End: buttons.length - 1 }[event.key];
  if (at < 0 || next === undefined || !buttons[next]) return;
  event.preventDefault();
  buttons[next].focus();
});

new ResizeObserver(draw).observe(figure);
document.fonts?.ready.then(draw);
