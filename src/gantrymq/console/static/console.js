// What pages do in the browser beside htmx: themes, times in the reader's time zone, the choice of a
// cluster, and keys. No page needs more than it says in its attributes.
"use strict";

const isDark = () => {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
};

const pad = (number, width = 2) => String(number).padStart(width, "0");

// 2026-11-18 09:30:00.123 in the reader's time zone.
const shownTime = (ms) => {
  const time = new Date(ms);
  const day = `${time.getFullYear()}-${pad(time.getMonth() + 1)}-${pad(time.getDate())}`;
  const clock = `${pad(time.getHours())}:${pad(time.getMinutes())}:${pad(time.getSeconds())}`;
  return `${day} ${clock}.${pad(time.getMilliseconds(), 3)}`;
};

const showTimes = (root) => {
  for (const each of root.querySelectorAll("time[data-ms]")) {
    const ms = Number(each.dataset.ms);
    each.title = new Date(ms).toISOString();
    each.textContent = shownTime(ms);
  }
};

// What scrolls inside the page can be scrolled with keys: it takes the focus while it is too wide.
const reachScrollable = () => {
  for (const each of document.querySelectorAll(".wide, pre")) {
    const scrolls = each.scrollWidth > each.clientWidth || each.scrollHeight > each.clientHeight;
    if (scrolls) each.tabIndex = 0;
    else each.removeAttribute("tabindex");
  }
};

const adapt = (root) => {
  showTimes(root);
  reachScrollable();
};

addEventListener("resize", reachScrollable);
addEventListener("load", reachScrollable);
document.addEventListener("toggle", reachScrollable, true);

document.addEventListener("DOMContentLoaded", () => {
  adapt(document);
  // In a narrow window the sections are a row that scrolls.
  const nav = document.querySelector("body > nav");
  const here = nav?.querySelector("[aria-current]");
  if (here) nav.scrollLeft = here.offsetLeft - (nav.clientWidth - here.offsetWidth) / 2;
  document.getElementById("theme")?.addEventListener("click", () => {
    const next = isDark() ? "light" : "dark";
    document.documentElement.dataset.theme = next;
    localStorage.setItem("theme", next);
    document.dispatchEvent(new CustomEvent("theme"));
  });
  document.getElementById("cluster-choice")?.addEventListener("change", (event) => {
    location.href = event.target.value;
  });
});

document.addEventListener("htmx:load", (event) => adapt(event.detail.elt.parentElement ?? document));

// What a part of the page said when it could not be had is over once a part comes again.
document.addEventListener("htmx:afterRequest", (event) => {
  const { successful, requestConfig } = event.detail;
  if (successful && requestConfig.verb === "get") document.querySelector("#said .part")?.remove();
});

// "/" goes to the search field of the page, as in most consoles; Escape leaves it.
document.addEventListener("keydown", (event) => {
  const field = document.querySelector("input[type=search]");
  const isTyping = event.target.closest?.("input, textarea, select");
  if (event.key === "/" && field && !isTyping) {
    event.preventDefault();
    field.focus();
  } else if (event.key === "Escape" && event.target === field) {
    field.blur();
  }
});
