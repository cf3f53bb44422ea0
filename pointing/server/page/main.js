// The page: what the user writes goes to the server, and what it answers goes into the figure and the lists.

import { Problem, generate, getModels } from "./api.js";
import { listenToRows, showAttention } from "./attention.js";
import { showCounts, showWord } from "./details.js";
import { light, listenToWords, showFigure } from "./figure.js";
import { listenToFiles } from "./files.js";
import { showComparison, showHypotheses } from "./lists.js";
import { readGlossary, readKept } from "./terms.js";
import { element, percent } from "./text.js";

const PAUSE = 250; // milliseconds without a key before the text is sent
const SEARCH = { beam: 5, nbest: 5 };
const CHOICES = 5; // best choices of each step

const at = (id) => document.getElementById(id);
const text = at("text");
const glossary = at("glossary");
const keep = at("keep");
const example = at("example");

let models = [];
let limits = {};
let model = null; // the one in use
let against = null; // the one beside it, if there is one
let current = null; // the request that is under way: its AbortController
let timer = null;
let asked = null; // the line and the terms that were sent last
let shown = null; // {output, source, kept} of the figure
let lastExample = null;

start();

async function start() {
  listenToFiles(fileSettings, announce);
  listenToWords((index) => {
    if (!shown) return;
    if (index === null) showCounts(shown.output, shown.source, shown.kept);
    else showWord(shown.output.tokens[index], shown.source, shown.kept);
  });
  listenToRows(light);
  await loadModels();
  text.addEventListener("input", later);
  glossary.addEventListener("input", later);
  keep.addEventListener("input", later);
  document.addEventListener("selectionchange", () => {
    if (document.activeElement === text && lineOfCaret().line !== asked?.line) later();
  });
  example.addEventListener("click", takeExample);
  if (!text.value.trim() && model?.examples?.length) text.value = lastExample = model.examples[0];
  now();
}

async function loadModels() {
  try {
    const answer = await getModels({ onBusy: sayBusy });
    models = answer.models;
    limits = answer.limits ?? {};
    at("about").append(` Version ${answer.version}.`);
  } catch (error) {
    fail(error);
  }
  against = models.find((each) => each.role === "against") ?? null;
  const choices = models.filter((each) => each.role === "model");
  if (choices.length) use(choices[0]);
  showModelChoice(choices);
}

function showModelChoice(choices) {
  if (choices.length < 2) {
    at("model").textContent = model ? nameOf(model) : "";
    return;
  }
  const options = choices.map((each) => element("option", { value: each.name }, nameOf(each)));
  const select = element("select", { id: "model-choice" }, ...options);
  select.addEventListener("change", () => {
    use(choices.find((each) => each.name === select.value));
    now();
  });
  at("model").replaceChildren(element("label", { for: "model-choice" }, "Model "), select);
}

function nameOf({ name, languages }) {
  return languages?.length === 2 ? `${languages[0]} → ${languages[1]} (${name})` : name;
}

function use(chosen) {
  model = chosen;
  const takesTerms = model.takes_terms !== false;
  glossary.disabled = keep.disabled = !takesTerms;
  at("no-terms").hidden = takesTerms;
  example.hidden = !model.examples?.length;
}

function takeExample() {
  const others = model.examples.filter((line) => line !== lastExample);
  const choices = others.length ? others : model.examples;
  text.value = lastExample = choices[Math.floor(Math.random() * choices.length)];
  now();
}

/** The line of the text box that the caret is on, its number, and the number of lines. */
function lineOfCaret() {
  const lines = text.value.split("\n");
  const number = text.value.slice(0, text.selectionEnd ?? 0).split("\n").length;
  return { line: lines[number - 1], number, lines: lines.length };
}

function terms() {
  if (model?.takes_terms === false) return { glossary: {}, keep: [], problems: [] };
  const { terms: entries, problems } = readGlossary(glossary.value);
  return { glossary: entries, keep: readKept(keep.value), problems };
}

function fileSettings() {
  const { glossary: entries, keep: kept } = terms();
  return { run: model?.name ?? "", glossary: entries, keep: kept, beam: SEARCH.beam, fileBytes: limits.file_bytes ?? Infinity };
}

function later() {
  clearTimeout(timer);
  timer = setTimeout(now, PAUSE);
}

/** Sends the text. An answer that is still under way is dropped: it would be about an older text. */
async function now() {
  clearTimeout(timer);
  current?.abort();
  if (!model) return;
  const { line, number, lines } = lineOfCaret();
  const { glossary: entries, keep: kept, problems } = terms();
  at("glossary-error").textContent = problems.join(" ");
  asked = { line };
  const controller = (current = new AbortController());
  if (!line.trim()) {
    clear(lines > 1 ? `Line ${number} of ${lines} is empty.` : "");
    return;
  }
  try {
    const [ours, theirs] = await Promise.all([
      request(model, line, entries, kept, SEARCH, controller.signal),
      against && request(against, line, entries, kept, comparedSearch(), controller.signal),
    ]);
    if (controller.signal.aborted) return;
    say(lines > 1 ? `Line ${number} of ${lines}, where the caret is.` : "");
    show(ours, theirs, kept);
  } catch (error) {
    if (!controller.signal.aborted) fail(error);
  }
}

/** A model that cannot point may write the unknown word here: it is what it would write, and it is to be seen. */
function comparedSearch() {
  return { beam: SEARCH.beam, nbest: 1, allow_unk: against.can_point === false };
}

async function request(from, line, entries, kept, search, signal) {
  const withTerms = from.takes_terms === false ? {} : { glossary: entries, keep: kept };
  const values = { text: line, run: from.name, ...search, ...withTerms, locations: true, choices: CHOICES };
  const answer = await generate(values, { signal, onBusy: sayBusy });
  return answer.outputs[0];
}

function show(output, theirs, kept) {
  const { source } = output;
  const language = model.languages?.[1];
  at("result").hidden = at("more").hidden = false;
  showOne(output, source, kept);
  showHypotheses(output, source, kept, language, (chosen) => showOne(chosen, source, kept));
  const sides = [[model, output], [against, theirs]].map(([from, each]) => from && { name: from.name, about: from.output, output: each });
  showComparison(sides[0], theirs ? sides[1] : null, source, kept, language);
  announce(output.text || "No output.");
}

/** Shows one output of the n-best list in the figure and in the table of attention. */
function showOne(output, source, kept) {
  shown = { output, source, kept };
  showFigure(output, source, kept, model.languages);
  showCounts(output, source, kept);
  showAttention(output, source, kept);
  const remarks = [];
  if (output.review) remarks.push(element("span", { class: "review" }, "⚑ please review"));
  if (typeof output.confidence === "number") remarks.push(element("span", {}, `confidence ${percent(output.confidence)}`));
  if (output.warning) remarks.push(element("span", { class: "warning", dir: "auto" }, output.warning));
  if (!output.text) remarks.push(element("span", {}, "The model wrote nothing."));
  at("remarks").replaceChildren(...remarks);
  legend(output);
}

/** Says what colours and bars mean, for the kinds of words that this output has. */
function legend(output) {
  const origins = new Set(output.tokens.map((token) => token.origin));
  const names = { copied: "copied", translated: "translated by the dictionary", glossary: "your terms" };
  if (shown.kept.length) origins.add("glossary");
  const colours = Object.keys(names).filter((origin) => origins.has(origin))
    .map((origin) => element("span", { class: `key ${origin}` }, names[origin]));
  const full = element("span", { class: "sample-bar full", "aria-hidden": "true" });
  const empty = element("span", { class: "sample-bar", "aria-hidden": "true" });
  const bars = element("span", { class: "key" }, "switch d", element("sub", {}, "t"), ": ", full, " shortlist ", empty, " pointing");
  at("legend").replaceChildren(...colours, bars);
}

function clear(sentence) {
  shown = null;
  at("result").hidden = at("more").hidden = true;
  say(sentence);
}

function say(sentence, isError = false) {
  at("status").textContent = sentence;
  at("status").classList.toggle("failed", isError);
}

function sayBusy() {
  say("The server is busy, trying again …");
}

function fail(error) {
  const sentence = error instanceof Problem ? error.message : "Something went wrong on this page.";
  if (!(error instanceof Problem)) console.error(error);
  say(sentence, true);
  announce(sentence);
}

/** Tells users of screen readers. */
function announce(sentence) {
  at("announcement").textContent = sentence;
}
