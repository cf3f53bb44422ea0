// The n-best list, and the outputs of two models side by side.

import { element, languageTag, percent } from "./text.js";
import { UNKNOWN, colouredText } from "./words.js";

const nbest = document.getElementById("nbest");
const hypotheses = document.getElementById("hypotheses");
const comparison = document.getElementById("comparison");
const pair = document.getElementById("pair");

/** Lists an output and its alternatives; `onChoice` is called with the one that the user chooses. */
export function showHypotheses(output, source, kept, language, onChoice) {
  const all = [output, ...(output.alternatives ?? [])];
  nbest.hidden = all.length < 2;
  hypotheses.replaceChildren(...all.map((each, index) => {
    const choice = element("input", { type: "radio", name: "hypothesis", value: index, checked: index === 0 });
    choice.addEventListener("change", () => onChoice(each));
    const text = element("span", { class: "text", dir: "auto", lang: languageTag(language) }, ...colouredText(each, source.text, kept));
    return element("label", { class: "hypothesis" }, choice, text, element("span", { class: "score" }, scoreOf(each)));
  }));
}

function scoreOf(output) {
  const sure = typeof output.confidence === "number" ? `, confidence ${percent(output.confidence)}` : "";
  return `score ${output.score.toFixed(2)}${sure}`;
}

/** Shows the outputs of two runs beside each other. Each side is {name, about, output}; null hides the section. */
export function showComparison(ours, theirs, source, kept, language) {
  comparison.hidden = !theirs;
  if (!theirs) return;
  pair.replaceChildren(
    side(ours, source, kept, language),
    side(theirs, source, kept, language, missingWords(ours.output, theirs.output)),
  );
}

function side({ name, about, output }, source, kept, language, missing = []) {
  const text = output.text
    ? colouredText(output, source.text, kept)
    : [element("span", { class: "hint" }, "It wrote nothing.")];
  const article = element(
    "article",
    {},
    element("h3", {}, name, element("span", { class: "hint" }, ` ${about}`)),
    element("p", { class: "text", dir: "auto", lang: languageTag(language) }, ...text),
  );
  if (missing.length) {
    const list = missing.flatMap((word, index) => [index ? ", " : " ", element("span", { class: "lost" }, word)]);
    article.append(element("p", { class: "missing" }, "Not in it:", ...list));
  }
  return article;
}

/** Words that one output took from the source and that the other output does not have. */
function missingWords(output, other) {
  const taken = output.tokens.filter((token) => token.origin !== "shortlist" && token.text !== UNKNOWN);
  const words = new Set(other.tokens.map((token) => token.text));
  return [...new Set(taken.map((token) => token.text))].filter((word) => !words.has(word));
}
