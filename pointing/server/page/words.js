// Words of an output: their kind, what is said about them, and their text in colour.

import { element, partsOf, percent, slice, visible } from "./text.js";

export const UNKNOWN = "<unk>"; // how the server writes a word that a model could not name
export const NAMES_OF_KINDS = {
  shortlist: "from the shortlist",
  copied: "copied",
  translated: "translated by the dictionary",
  glossary: "from your glossary",
  kept: "kept, as you asked",
  source: "the source line, kept as it is",
};

/** The kind of a word: its origin, or "kept" for a copied word that the user asked to keep. */
export function kindOf(token, sourceText, kept) {
  if (token.origin !== "copied" || !token.span) return token.origin;
  const word = slice(sourceText, token.span).toLowerCase();
  return kept.some((term) => term.toLowerCase() === word) ? "kept" : "copied";
}

/** True if a word has a place in the source that it came from. */
export function pointsAtSource(token) {
  return token.source !== null && token.source !== undefined && token.origin !== "source";
}

/** Where a word came from, in one sentence. */
export function originSentence(token, kind, sourceText) {
  if (token.text === UNKNOWN) return "a word that this model cannot name";
  if (!token.span || !pointsAtSource(token)) return NAMES_OF_KINDS[kind];
  const [start, end] = token.span;
  const from = `“${visible(slice(sourceText, token.span))}”, characters ${start}–${end}`;
  if (kind === "copied") return `copied from ${from}`;
  if (kind === "kept") return `kept as you asked: ${from}`;
  if (kind === "glossary") return `your glossary’s term for ${from}`;
  return `${NAMES_OF_KINDS[kind]} from ${from}`;
}

/** All that is said about a word, for screen readers. */
export function description(token, kind, sourceText) {
  const parts = [originSentence(token, kind, sourceText)];
  if (typeof token.probability === "number") parts.push(`probability ${percent(token.probability)}`);
  if (typeof token.shortlist === "number") parts.push(`switch ${percent(token.shortlist)} shortlist`);
  return parts.join("; ");
}

/** An output's text as nodes: its words in the colours of their kinds, and unknown words marked. */
export function colouredText(output, sourceText, kept) {
  const places = output.tokens.map((token) => token.output);
  return partsOf(output.text, places).flatMap(([text, index]) => {
    if (index === null) return markUnknown(text);
    const token = output.tokens[index];
    if (token.text === UNKNOWN || text === UNKNOWN) return [element("mark", { class: "unknown" }, text)];
    const kind = kindOf(token, sourceText, kept);
    return [kind === "shortlist" ? visible(text) : element("span", { class: `word-text ${kind}` }, visible(text))];
  });
}

function markUnknown(text) {
  return text.split(UNKNOWN).flatMap((part, index) => {
    const shown = visible(part);
    return index ? [element("mark", { class: "unknown" }, UNKNOWN), shown] : [shown];
  });
}
