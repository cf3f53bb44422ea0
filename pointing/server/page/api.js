// Requests to the server: with the API key if one is needed, and tried once more if the server is busy.

import { askForKey } from "./key.js";

const LONGEST_WAIT = 30; // seconds that the page waits for a busy server
const KEY = "pointing-api-key"; // where this tab keeps the key

/** A sentence for the user about what went wrong. */
export class Problem extends Error {}

/** What the server says about its models. */
export function getModels(options = {}) {
  return ask("model", {}, options);
}

/** Outputs of one text by one run. */
export function generate(request, options) {
  const headers = { "Content-Type": "application/json" };
  return ask("generate", { method: "POST", headers, body: JSON.stringify(request) }, options);
}

/** A file, translated. */
export function translateFile(file, { run, glossary, keep, beam }, options) {
  const form = new FormData();
  form.append("file", file, file.name);
  form.append("run", run);
  form.append("glossary", JSON.stringify(glossary));
  form.append("keep", JSON.stringify(keep));
  form.append("beam", String(beam));
  return ask("files", { method: "POST", body: form }, options);
}

/** The server's answer as JSON. `onBusy` is called before the page waits and tries again. */
async function ask(path, request, { signal, onBusy = () => {} } = {}) {
  let waited = false;
  let refused = null; // the key that the server did not accept
  for (;;) {
    const key = sessionStorage.getItem(KEY);
    const headers = { ...request.headers, ...(key ? { "X-API-Key": key } : {}) };
    const response = await send(path, { ...request, headers, signal });
    if (response.status === 401) {
      if (key === sessionStorage.getItem(KEY)) {
        refused = key;
        sessionStorage.setItem(KEY, await newKey(refused !== null));
      }
      signal?.throwIfAborted();
      continue;
    }
    if ((response.status === 503 || response.status === 429) && !waited) {
      waited = true;
      onBusy();
      await wait(secondsToWait(response), signal);
      continue;
    }
    return answer(response);
  }
}

async function send(path, request) {
  try {
    return await fetch(path, request);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem("The server cannot be reached. Is it still running?");
  }
}

async function newKey(wasRefused) {
  const key = await askForKey(wasRefused);
  if (key === null) throw new Problem("This server needs an API key. Change the text to be asked again.");
  return key;
}

async function answer(response) {
  let values = null;
  try {
    values = await response.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
  }
  if (response.ok && values !== null) return values;
  throw new Problem(values?.error ?? `The server answered ${response.status} ${response.statusText}`.trim() + ".");
}

function secondsToWait(response) {
  const seconds = Number(response.headers.get("Retry-After") ?? 1);
  return Number.isFinite(seconds) ? Math.min(Math.max(seconds, 0.2), LONGEST_WAIT) : 1;
}

function wait(seconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, seconds * 1000);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    }, { once: true });
  });
}
