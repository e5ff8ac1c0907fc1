// Runs in the head, before anything is drawn, so that a dark page does not flash white.
(() => {
  let stored = null;
  try { stored = localStorage.getItem("dichotomies-theme"); } catch { /* not allowed in some frames */ }
  const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  document.documentElement.dataset.theme = stored || system;
})();
