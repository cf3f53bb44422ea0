// The dialog that asks for the API key.

const dialog = document.getElementById("key-dialog");
const form = document.getElementById("key-form");
const field = document.getElementById("key");
const hint = document.getElementById("key-hint");

let open = null; // the answer that is being waited for; several requests share one dialog

/** The key that the user enters, or null if there is none. */
export function askForKey(wasRefused) {
  open ??= new Promise((resolve) => {
    hint.textContent = wasRefused
      ? "The server did not accept this key. Please try another one."
      : "This server asks for a key. It is kept until you close this tab.";
    field.value = "";
    dialog.returnValue = "";
    dialog.addEventListener("close", () => {
      open = null;
      resolve(dialog.returnValue === "use" ? field.value.trim() : null);
      field.value = "";
    }, { once: true });
    dialog.showModal();
  });
  return open;
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  dialog.close(field.value.trim() ? "use" : "");
});
document.getElementById("key-cancel").addEventListener("click", () => dialog.close(""));
