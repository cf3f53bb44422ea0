"""Outputs as one page that opens anywhere: no network, no file beside it, everything in it escaped.

Source and output stand side by side, as they are: with their spaces and capitals. A copied word is a link to its source
word; hovering over a word, or reaching it with the keyboard, lights up where it came from and where the model looked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape

from pointing.generation.output import Output, Token, parts, remarks
from pointing.system.terminal import visible

FAINT = 0.01  # attention below this is not shown


def page(outputs: Iterable[Output], title: str = "pointing") -> Iterator[str]:
    """The page's pieces, one after the other, so that it may be longer than memory."""
    yield HEAD.replace("TITLE", _text(title))
    for output in outputs:
        yield _pair(output)
    yield TAIL


def _pair(output: Output) -> str:
    more = "".join(f"<li>{_words(each)} {_score(each)}</li>" for each in output.alternatives)
    return (
        f'<section id="l{output.line}"><h2>{output.line}</h2>\n'
        f'<p class="source" dir="auto">{_source(output)}</p>\n'
        f'<div><p dir="auto">{_words(output)} {_score(output)}</p>'
        + "".join(f'<p class="review" dir="auto">{_text(remark)}</p>' for remark in remarks(output))
        + (f"<details><summary>{len(output.alternatives)} more</summary><ol>{more}</ol></details>" if more else "")
        + (f'<p class="warning">{_text(output.warning)}</p>' if output.warning else "")
        + "</div></section>\n"
    )


def _source(output: Output) -> str:
    line, at, pieces = output.source, 0, []
    written = [each for each in (*reversed(output.alternatives), output) if not each.fallback]
    tokens = [token for each in written for token in each.tokens]
    origins = {token.source: token.origin for token in tokens}  # the best output's comes last, and stays
    for position, (start, end) in enumerate(zip(line.starts.tolist(), line.ends.tolist(), strict=True)):
        pieces.append(_text(line.text[at:start]))
        kind = f' class="used {origins[position]}"' if position in origins else ""
        pieces.append(f'<b id="l{output.line}w{position}"{kind}>{_text(line.text[start:end])}</b>')
        at = end
    return "".join([*pieces, _text(line.text[at:])])


def _words(output: Output) -> str:
    """The text as it is delivered, its words marked."""
    if output.fallback:
        return _text(output.text)
    return "".join(_text(text) if token is None else _word(text, token, output.line) for text, token in parts(output))


def _word(text: str, token: Token, line: int) -> str:
    about = f"{token.probability:.0%} probable, shortlist {token.d:.0%}"
    looked = ""
    if token.location is not None:
        places = [f"{j}:{weight:.2f}" for j, weight in enumerate(token.location.tolist()) if weight >= FAINT]
        looked = f' data-looked="{" ".join(places)}"'
    if token.source is None:
        return f'<i tabindex="0" title="{about}"{looked}>{_text(text)}</i>'
    where = f'href="#l{line}w{token.source}" data-from="{token.source}"'
    return f'<a class="{token.origin}" {where} title="{token.origin}, {about}"{looked}>{_text(text)}</a>'


def _score(output: Output) -> str:
    sure = "" if output.confidence is None or output.review else f", confidence {output.confidence:.2f}"
    return f"<small>{output.score:.3f}{sure}</small>"


def _text(text: str) -> str:
    return escape(visible(text))


HEAD = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<title>TITLE</title>
<style>
:root { --copied: #0a7d33; --translated: #8a2be2; --glossary: #0a5ca8; --lit: 255, 190, 0; --review: #8a5a00;
  --review-ground: #fff3d6; color-scheme: light dark }
@media (prefers-color-scheme: dark) {
  :root { --copied: #5fd68a; --translated: #c9a0ff; --glossary: #86c2ff; --lit: 190, 120, 0; --review: #ffcf70;
    --review-ground: #40310f }
}
body { font: 16px/1.7 system-ui, sans-serif; margin: 1em auto; max-width: 75em; padding: 0 1em }
section { display: grid; grid-template-columns: 2.5em 1fr 1fr; gap: 0 1.5em; border-top: 1px solid #8884 }
h2 { font-size: 1em; font-weight: normal; opacity: .6; margin: 1em 0 }
p { margin: 1em 0; overflow-wrap: anywhere; white-space: pre-wrap } .about { white-space: normal }
b, i, a { font: inherit; text-decoration: none; border-radius: .2em; unicode-bidi: isolate }
b.used { border-bottom: 2px solid var(--origin) }
a.copied, a.translated, a.glossary { color: var(--origin); font-weight: bold }
.copied { --origin: var(--copied) } .translated { --origin: var(--translated) } .glossary { --origin: var(--glossary) }
.lit, b:target { outline: 2px solid rgb(var(--lit)) }
small, summary { opacity: .6 } details { margin-bottom: .7em }
.review { color: var(--review); background: var(--review-ground); border-radius: .3em; padding: 0 .5em;
  margin: -.4em 0 1em; font-size: .9em; width: fit-content }
.warning::before { content: "⚠ " }
@media (max-width: 45em) { section { grid-template-columns: 2.5em 1fr } section > div { grid-column: 2 } }
</style></head><body>
<h1>TITLE</h1>
<p class="about"><a class="copied">copied</a> from the source, <a class="translated">translated</a> by the dictionary
from a source word, written as the <a class="glossary">glossary</a> says, or from the shortlist. Point at a word to see
where it came from and where the model looked.</p>
"""

TAIL = """<script>
"use strict";
let lit = [];
function clear() {
  for (const word of lit) { word.classList.remove("lit"); word.style.background = "" }
  lit = [];
}
function light(event) {
  clear();
  const word = event.target.closest("a[data-from], i");
  const pair = word && word.closest("section");
  if (!pair) return;
  const at = position => document.getElementById(pair.id + "w" + position);
  for (const place of (word.dataset.looked || "").split(" ").filter(Boolean)) {
    const [position, weight] = place.split(":"), source = at(position);
    source.style.background = "rgba(var(--lit), " + weight + ")";
    lit.push(source);
  }
  if (word.dataset.from) { const source = at(word.dataset.from); source.classList.add("lit"); lit.push(source) }
}
document.addEventListener("mouseover", light);
document.addEventListener("focusin", light);
document.addEventListener("focusout", clear);
</script></body></html>
"""
