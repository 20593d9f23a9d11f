// The chosen theme, before anything is drawn; without a choice the system's.
(() => {
  const chosen = localStorage.getItem("theme");
  if (chosen) document.documentElement.dataset.theme = chosen;
})();
