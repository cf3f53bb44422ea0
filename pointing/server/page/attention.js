// Attention as a table: source words as columns, output words as rows, a colour for each weight.

import { element, percent, visible } from "./text.js";
import { kindOf, pointsAtSource } from "./words.js";

const FAINT = 0.005; // weights below this are left empty
const section = document.getElementById("attention");
const place = document.getElementById("heat-map");

/** Shows where the model looked at each word of an output; nothing if the server did not say it. */
export function showAttention(output, source, kept) {
  const rows = output.tokens.flatMap((token, index) => (token.location ? [row(token, index, source, kept)] : []));
  section.hidden = rows.length === 0;
  const columns = source.tokens.map((token) =>
    element("th", { scope: "col", dir: "auto" }, element("span", {}, visible(token.text))));
  place.replaceChildren(
    element(
      "table",
      { class: "heat" },
      element("caption", { class: "visually-hidden" }, "Attention of each output word to each source word, in percent"),
      element("thead", {}, element("tr", {}, element("td", {}), ...columns)),
      element("tbody", {}, ...rows),
    ),
  );
}

function row(token, index, source, kept) {
  const kind = kindOf(token, source.text, kept);
  const cells = source.tokens.map((word, position) => {
    const weight = token.location[position] ?? 0;
    const isTarget = pointsAtSource(token) && token.source === position;
    const cell = element("td", { class: isTarget ? `target ${kind}` : null, title: `${visible(word.text)}: ${percent(weight)}` });
    if (weight >= FAINT) {
      cell.style.setProperty("--weight", weight);
      cell.append(element("span", { class: "visually-hidden" }, percent(weight)));
    }
    return cell;
  });
  return element(
    "tr",
    { "data-index": index },
    element("th", { scope: "row", class: kind, dir: "auto" }, visible(token.text)),
    ...cells,
  );
}

/** Calls `listener` with the index of the output word whose row is pointed at, or null. */
export function listenToRows(listener) {
  place.addEventListener("mouseover", (event) => {
    const found = event.target.closest("tr[data-index]");
    listener(found ? Number(found.dataset.index) : null);
  });
  place.addEventListener("mouseleave", () => listener(null));
}
