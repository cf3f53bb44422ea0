// Files: dropped or chosen, translated one after the other, each with its counts and its downloads.

import { Problem, translateFile } from "./api.js";
import { counted, element } from "./text.js";

const drop = document.getElementById("drop");
const input = document.getElementById("file");
const list = document.getElementById("file-list");

let queue = Promise.resolve(); // the end of the last file's translation

/** Starts listening to files. `settings` gives the run, the terms and the limits of this moment; `tell` announces. */
export function listenToFiles(settings, tell) {
  input.addEventListener("change", () => {
    add(input.files, settings, tell);
    input.value = "";
  });
  // A file that is dropped beside the zone would replace the page, so the whole page takes files.
  document.addEventListener("dragover", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    drop.classList.add("over");
  });
  document.addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) drop.classList.remove("over");
  });
  document.addEventListener("drop", (event) => {
    drop.classList.remove("over");
    if (!hasFiles(event)) return;
    event.preventDefault();
    add(event.dataTransfer.files, settings, tell);
  });
}

function hasFiles(event) {
  return event.dataTransfer?.types.includes("Files");
}

function add(files, settings, tell) {
  for (const file of Array.from(files)) {
    const state = element("p", { class: "state" }, "waiting …");
    const item = element("li", {}, element("p", { class: "file-name", dir: "auto" }, file.name), state);
    list.append(item);
    queue = queue.then(() => translate(file, item, state, settings, tell));
  }
}

async function translate(file, item, state, settings, tell) {
  const { run, glossary, keep, beam, fileBytes } = settings();
  state.textContent = "translating …";
  try {
    if (file.size > fileBytes) throw new Problem(`This file is larger than ${fileBytes.toLocaleString("en")} bytes.`);
    const onBusy = () => { state.textContent = "The server is busy, trying again …"; };
    const answer = await translateFile(file, { run, glossary, keep, beam }, { onBusy });
    showResult(answer, item, state);
    tell(`${file.name}: ${state.textContent}`);
  } catch (error) {
    if (!(error instanceof Problem)) console.error(error);
    state.className = "state failed";
    state.textContent = error instanceof Problem ? error.message : "Something went wrong with this file.";
    tell(`${file.name}: ${state.textContent}`);
  }
}

function showResult({ name, data, summary, review }, item, state) {
  state.textContent = sentence(summary);
  for (const note of summary.notes ?? []) item.append(element("p", { class: "hint", dir: "auto" }, note));
  const links = [link(bytesOf(data), "application/octet-stream", name, name)];
  if (review) links.push(link(review, "text/html;charset=utf-8", "review.html", "page to review"));
  item.append(element("p", { class: "downloads" }, ...links));
}

/** The counts of a file; those that are zero and say nothing are left out. */
function sentence(summary) {
  const parts = [`${summary.filled} filled`, `${summary.left} left as they were`];
  if (summary.failed) parts.push(`${summary.failed} failed`);
  if (summary.review) parts.push(`⚑ ${summary.review} to review`);
  for (const [key, noun] of [["copied_names", "copied name"], ["placeholders", "placeholder"], ["glossary_terms", "glossary term"]]) {
    if (summary[key]) parts.push(counted(summary[key], noun));
  }
  if (summary.msgfmt) parts.push(`msgfmt: ${summary.msgfmt}`);
  return parts.join(" · ");
}

function link(content, type, fileName, text) {
  const url = URL.createObjectURL(new Blob([content], { type }));
  return element("a", { href: url, download: fileName }, `↓ ${text}`);
}

function bytesOf(base64) {
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}
