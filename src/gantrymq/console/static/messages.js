// What pages about messages do beside htmx: stop a search or a tail, keep a tail short, and tell the
// server how far the reader's clock is from UTC.
"use strict";

// A request of a part that can be stopped may end early: that is no fault to write to the console.
document.addEventListener("htmx:beforeSend", ({ detail }) => {
  if (detail.elt.querySelector("[data-stop]")) detail.xhr.onabort = null;
});

// A copy without the attributes that ask for the next part takes the place of the part that asks.
document.addEventListener("click", (event) => {
  const button = event.target.closest?.("[data-stop]");
  const part = button?.closest("tbody, div[hx-get]");
  if (!part) return;
  htmx.trigger(part, "htmx:abort");
  const copy = part.cloneNode(true);
  copy.classList.remove(htmx.config.requestClass);
  for (const name of ["hx-get", "hx-trigger"]) copy.removeAttribute(name);
  copy.querySelector("[data-stop]")?.remove();
  copy.querySelector(".following")?.remove();
  copy.querySelector(".go-on")?.removeAttribute("hidden");
  part.replaceWith(copy);
  htmx.process(copy);
  copy.querySelector(".go-on")?.focus();
});

document.addEventListener("htmx:afterSettle", () => {
  for (const table of document.querySelectorAll("table[data-rows-max]")) {
    const rows = [...table.querySelectorAll("tbody:not(#progress) > tr")];
    for (const row of rows.slice(Number(table.dataset.rowsMax))) row.remove();
    for (const part of table.querySelectorAll("tbody:not(#progress)")) if (!part.rows.length) part.remove();
  }
});

for (const field of document.querySelectorAll("input[name=zone]")) {
  field.value = String(-new Date().getTimezoneOffset());
}
