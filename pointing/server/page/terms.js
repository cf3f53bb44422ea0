// The user's terms: how a glossary and kept words are read from their text boxes.

/** Terms of lines "term = translation", and sentences about lines that are not understood. */
export function readGlossary(text) {
  const terms = {};
  const problems = [];
  text.split("\n").forEach((line, index) => {
    if (!line.trim()) return;
    const at = line.indexOf("=");
    const term = at < 0 ? "" : line.slice(0, at).trim();
    const translation = at < 0 ? "" : line.slice(at + 1).trim();
    if (term && translation) Object.defineProperty(terms, term, { value: translation, enumerable: true, configurable: true });
    else problems.push(`Line ${index + 1} is not “term = translation” yet.`);
  });
  return { terms, problems };
}

/** Kept words, one a line. */
export function readKept(text) {
  return text.split("\n").map((line) => line.trim()).filter(Boolean);
}
