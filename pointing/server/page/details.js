// What is known about one word: its origin, its probability, the switch, and the best alternatives at its step.

import { counted, element, percent, visible } from "./text.js";
import { NAMES_OF_KINDS, kindOf, originSentence } from "./words.js";

const panel = document.getElementById("details");

/** Shows a word of an output. */
export function showWord(token, source, kept) {
  const kind = kindOf(token, source.text, kept);
  panel.replaceChildren(
    element(
      "div",
      { class: "about-word" },
      element("p", { class: `chosen ${kind}`, dir: "auto" }, visible(token.text)),
      element("p", { class: "origin", dir: "auto" }, originSentence(token, kind, source.text)),
    ),
    numbers(token),
    ...choices(token, source),
  );
}

/** What is shown while no word is looked at: how many words came from where. */
export function showCounts(output, source, kept) {
  const counts = new Map();
  for (const token of output.tokens) {
    const kind = kindOf(token, source.text, kept);
    counts.set(kind, (counts.get(kind) ?? 0) + 1);
  }
  const parts = [...counts].map(([kind, count]) =>
    element("li", { class: kind }, `${counted(count, "word")} ${NAMES_OF_KINDS[kind]}`));
  panel.replaceChildren(
    element(
      "div",
      { class: "idle" },
      element("ul", { class: "counts" }, ...parts),
      element("p", { class: "hint" }, "Point at a word of the output, or go there with the keyboard, to see where it came from."),
    ),
  );
}

/** The word's probability and the switch, as numbers and bars. */
function numbers(token) {
  const list = element("dl", { class: "numbers" });
  const rows = [["Probability", token.probability, "of this word at its step"], ["Switch d", token.shortlist, "probability of the shortlist"]];
  for (const [name, value, meaning] of rows) {
    if (typeof value !== "number") continue;
    const label = name === "Switch d" ? [name, element("sub", {}, "t")] : [name];
    list.append(
      element("div", {},
        element("dt", {}, ...label),
        element("dd", {}, element("strong", {}, percent(value)), bar(value), element("span", { class: "hint" }, meaning))),
    );
  }
  return list;
}

/** The best choices of the step, best first, as a table. */
function choices(token, source) {
  if (!token.choices?.length) return [];
  const rows = token.choices.map((choice) => {
    const isChosen = choice.text === token.text && (choice.source ?? null) === (token.source ?? null);
    const from = choice.origin === "shortlist" ? "shortlist" : placeName(choice, source);
    return element(
      "tr",
      { class: isChosen ? "is-chosen" : null },
      element("th", { scope: "row", class: choice.origin, dir: "auto" }, visible(choice.text)),
      element("td", {}, from),
      element("td", {}, element("div", { class: "number" }, percent(choice.probability), bar(choice.probability))),
    );
  });
  return [
    element(
      "table",
      { class: "choices" },
      element("caption", {}, "Best choices at this step"),
      element("thead", { class: "visually-hidden" },
        element("tr", {}, ...["Word", "From", "Probability"].map((name) => element("th", { scope: "col" }, name)))),
      element("tbody", {}, ...rows),
    ),
  ];
}

function placeName(choice, source) {
  const token = source.tokens[choice.source];
  return token ? `${choice.origin}, word ${choice.source + 1}` : choice.origin;
}

function bar(value) {
  const fill = element("span", {});
  fill.style.width = `${100 * Math.min(1, value)}%`;
  return element("span", { class: "bar", "aria-hidden": "true" }, fill);
}
