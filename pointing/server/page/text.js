// Small things about text and elements that every other file uses.

const SVG = "http://www.w3.org/2000/svg";

/** An element with attributes and children. Children are nodes or strings; strings are never read as HTML. */
export function element(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  setAttributes(node, attributes);
  node.append(...children);
  return node;
}

/** An SVG element with attributes. */
export function svgElement(name, attributes = {}) {
  const node = document.createElementNS(SVG, name);
  setAttributes(node, attributes);
  return node;
}

function setAttributes(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value);
  }
}

/** The characters of a text as the server counts them: Unicode code points, not JavaScript's UTF-16 units. */
export function characters(text) {
  return Array.from(text);
}

/** The part of a text between two offsets in code points. */
export function slice(text, [start, end]) {
  return characters(text).slice(start, end).join("");
}

/** A text whose control characters are replaced by pictures of them, such as ␉ for a tab. */
export function visible(text) {
  return text.replace(/[\u0000-\u001f\u007f]/g, (character) => {
    const code = character.codePointAt(0);
    return String.fromCodePoint(code === 0x7f ? 0x2421 : 0x2400 + code);
  });
}

/** A text cut at the places of its tokens: parts [text, index of the token or null], in order.
 *
 * `places` are the tokens' offsets [start, end] in code points. A place that overlaps with the one before it, or that is
 * empty, gets no part.
 */
export function partsOf(text, places) {
  const all = characters(text);
  const parts = [];
  let at = 0;
  places.forEach(([start, end], index) => {
    if (start < at || end <= start) return;
    if (start > at) parts.push([all.slice(at, start).join(""), null]);
    parts.push([all.slice(start, end).join(""), index]);
    at = end;
  });
  if (at < all.length) parts.push([all.slice(at).join(""), null]);
  return parts;
}

/** A probability for people: 94 %, 0.3 %, or < 0.1 %. */
export function percent(probability) {
  const value = 100 * probability;
  if (value >= 99.95) return "100 %";
  if (value >= 99) return `${(Math.floor(value * 10) / 10).toFixed(1)} %`;
  if (value >= 10) return `${Math.round(value)} %`;
  return value >= 0.1 ? `${value.toFixed(1)} %` : "< 0.1 %";
}

/** A count with its noun: 1 word, 2 words. */
export function counted(number, noun) {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}

/** The value of a `lang` attribute, or null if the name of the language does not look like one. */
export function languageTag(language) {
  return /^[a-z]{2,3}([-_]|$)/i.test(language ?? "") ? language.replace("_", "-") : null;
}
