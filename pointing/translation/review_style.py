"""How the review page looks, and how it filters: its beginning and its end."""

HEAD = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<title>TITLE – review</title>
<style>
:root {
  color-scheme: light dark;
  --page: #f6f7f9; --card: #fff; --ink: #1c2430; --soft: #687385; --rule: #e3e7ed;
  --copied: #0a7d33; --copied-ground: #e3f5e9; --translated: #7a1fd0; --translated-ground: #f1e6fc;
  --glossary: #0a5ca8; --glossary-ground: #e2effb; --span-ground: #eceff4; --lit: #ffd24d;
  --bad: #b3261e; --bad-ground: #fdecea; --review: #8a5a00; --review-ground: #fff3d6;
}
@media (prefers-color-scheme: dark) { :root {
  --page: #12161c; --card: #1a2029; --ink: #e4e9f0; --soft: #93a0b3; --rule: #2b3440;
  --copied: #6fdc95; --copied-ground: #16351f; --translated: #cfa6ff; --translated-ground: #2f1f45;
  --glossary: #86c2ff; --glossary-ground: #16304a; --span-ground: #2a323e; --lit: #a87a00;
  --bad: #ff9c94; --bad-ground: #45201d; --review: #ffcf70; --review-ground: #40310f;
} }
* { box-sizing: border-box }
body { font: 15px/1.6 system-ui, sans-serif; color: var(--ink); background: var(--page); margin: 0; padding-bottom:
  4em }
header, main, nav > div { max-width: 82em; margin: 0 auto; padding: 0 1.5em }
h1 { font-size: 1.5em; margin: 1.2em 0 .5em; overflow-wrap: anywhere }
h1 span { font-weight: normal; color: var(--soft); font-size: .7em }
.tiles { display: flex; flex-wrap: wrap; gap: .6em; list-style: none; margin: 0 0 .8em; padding: 0 }
.tiles li { background: var(--card); border: 1px solid var(--rule); border-radius: .6em; padding: .35em .9em;
  color: var(--soft) }
.tiles li b { font-size: 1.25em; color: var(--ink) }
.tiles .filled b, .tiles .copied b { color: var(--copied) } .tiles .failed:not(.none) b { color: var(--bad) }
.tiles .review:not(.none) b { color: var(--bad) }
.tiles .glossary b { color: var(--glossary) } .tiles .none b { color: var(--soft) }
.verdict, .note { margin: .3em 0; color: var(--soft); overflow-wrap: anywhere }
.verdict.good { color: var(--copied) } .verdict.good::before { content: "✓ " }
.verdict.bad { color: var(--bad) } .verdict.bad::before { content: "✗ " }
nav { position: sticky; top: 0; z-index: 1; background: var(--page); border-bottom: 1px solid var(--rule) }
nav > div { display: flex; flex-wrap: wrap; gap: .5em; align-items: center; padding-top: .7em; padding-bottom: .7em }
nav input[type=search] { font: inherit; color: inherit; background: var(--card); border: 1px solid var(--rule);
  border-radius: .5em; padding: .3em .8em; width: 18em; max-width: 100% }
nav label { cursor: pointer; border: 1px solid var(--rule); background: var(--card); border-radius: 2em; padding:
  .2em .9em }
nav label:has(:checked) { border-color: var(--ink) } nav label input { position: absolute; opacity: 0 }
nav label:has(:focus-visible), a:focus-visible, b:focus-visible { outline: 2px solid var(--lit) }
nav output { color: var(--soft); margin-left: auto }
main { margin-top: 1em }
main > div { background: var(--card); border: 1px solid var(--rule); border-radius: .6em; overflow: clip }
section { display: grid; grid-template-columns: 9.5em 1fr 1fr; border-top: 1px solid var(--rule); margin-top: -1px }
section:target { outline: 2px solid var(--lit); outline-offset: -2px }
section[hidden] { display: none }
aside, section > div { padding: .7em 1em; min-width: 0 } section > div { border-left: 1px solid var(--rule) }
.tiles .copied b { background: var(--copied-ground) } .tiles .span b { background: var(--span-ground) }
.tiles b { padding: 0 .25em } .tiles .none b { background: none }
aside { display: flex; flex-direction: column; align-items: flex-start; gap: .2em }
aside a { color: var(--soft); text-decoration: none; font-variant-numeric: tabular-nums }
em { font-style: normal; font-size: .75em; line-height: 1.5; border-radius: .4em; padding: 0 .5em; white-space: nowrap }
em.filled, em.fuzzy { background: var(--review-ground); color: var(--review) }
em.review { background: var(--bad-ground); color: var(--bad); font-weight: 600 }
aside small { color: var(--soft); font-size: .75em; white-space: nowrap }
em.failed { background: var(--bad-ground); color: var(--bad) } em.left { background: var(--span-ground); color:
  var(--soft) }
p { margin: 0; white-space: pre-wrap; overflow-wrap: anywhere } p + p { margin-top: .4em }
[data-kind=left] .target, [data-kind=left] .source { color: var(--soft) }
b { font-weight: inherit; border-radius: .25em; padding: 0 .15em; unicode-bidi: isolate }
b.copied { color: var(--copied); background: var(--copied-ground); font-weight: 600 }
b.translated { color: var(--translated); background: var(--translated-ground); font-weight: 600 }
b.glossary { color: var(--glossary); background: var(--glossary-ground); font-weight: 600 }
b.used { box-shadow: inset 0 -2px var(--copied) }
b.span { font: .9em/1.5 ui-monospace, monospace; background: var(--span-ground) }
b[data-k] { cursor: default } b.lit { outline: 2px solid var(--lit) }
.end { font-style: normal; color: var(--soft); opacity: .6 } .nothing::after { content: "—"; color: var(--soft) }
.form { font-size: .75em; color: var(--soft); border: 1px solid var(--rule); border-radius: .4em; padding: 0 .4em;
  margin-right: .5em }
.context { display: block; color: var(--soft) } .reason { color: var(--bad); font-size: .9em } .reason::before {
  content: "⚠ " }
details { color: var(--soft); font-size: .9em } details ol { margin: .3em 0; padding-left: 1.5em }
@media (max-width: 48em) {
  section { grid-template-columns: 1fr } section > div { border-left: 0 } .source { padding-bottom: 0 }
  aside { flex-direction: row; align-items: baseline; gap: .8em; padding-bottom: 0 }
  header, main, nav > div { padding-left: .8em; padding-right: .8em }
}
@media print { nav { display: none } section { break-inside: avoid } }
</style></head><body>
<nav><div>
<input type="search" id="typed" placeholder="filter by typing" aria-label="filter by typing">
<label><input type="radio" name="kind" value="" checked>all</label>
<label><input type="radio" name="kind" value="filled">filled</label>
<label><input type="radio" name="kind" value="review">⚑ flagged</label>
<label><input type="radio" name="kind" value="failed">left empty</label>
<label><input type="radio" name="kind" value="left">as they were</label>
<output id="shown"></output>
</div></nav>
"""

TAIL = """<script>
"use strict";
const rows = [...document.querySelectorAll("section")].map(row => [row, row.textContent.toLowerCase()]);
const typed = document.getElementById("typed"), shown = document.getElementById("shown");
function filter() {
  const words = typed.value.toLowerCase().trim(), kind = document.querySelector("[name=kind]:checked").value;
  let count = 0;
  for (const [row, text] of rows) {
    const isKind = !kind || row.dataset.kind === kind || (kind === "review" && "review" in row.dataset);
    const fits = isKind && text.includes(words);
    row.hidden = !fits;
    count += fits;
  }
  shown.textContent = count + " of " + rows.length;
}
document.querySelector("nav").addEventListener("input", filter);
filter();
let lit = [];
function light(event) {
  for (const word of lit) word.classList.remove("lit");
  const word = event.target.closest("b[data-k]");
  lit = word ? [...word.closest("section").querySelectorAll("b[data-k='" + word.dataset.k + "']")] : [];
  for (const each of lit) each.classList.add("lit");
}
document.addEventListener("mouseover", light);
document.addEventListener("focusin", light);
</script></body></html>
"""
