// Data, colours and the theme: what all parts of the page share.
"use strict";

const report = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const percent = (share, digits = 0) => `${(100 * share).toFixed(digits)} %`;
const count = (n) => (Number.isInteger(n) ? n : Number(n.toFixed(1))).toLocaleString("en-US");
const classes = (n) => (n === 1 ? "1 class" : `${count(n)} classes`);
const nats = (value) => (value === null ? "–" : value === 0 ? "0" : value.toFixed(Math.abs(value) < 0.01 ? 4 : 3));
const stillness = matchMedia("(prefers-reduced-motion: reduce)").matches;
const PAPER = { width: 640, height: 400, silent: true }; // no layout tells the width of paper before it is printed on
const SHORT = 60;
const shorten = (name) => (name.length > SHORT ? `${name.slice(0, SHORT - 1)}…` : name);

// An element with attributes and children; text is always set as text, so that a name cannot be markup.
function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

function colours() {
  const style = getComputedStyle(document.documentElement);
  const names = ["page", "card", "ink", "soft", "line", "quiet", "accent", "before", "after", "leaf"];
  return Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

const drawings = []; // {chart, draw}: drawn again when the theme or the width changes
const fontFamily = getComputedStyle(document.body).fontFamily;

function drawing(id, renderer, draw) {
  const chart = echarts.init(byId(id), null, { renderer });
  drawings.push({ chart, draw });
  new ResizeObserver(() => { chart.resize(); draw(); }).observe(byId(id));
  return chart;
}

function tooltipStyle(colour) {
  return {
    backgroundColor: colour.card, borderColor: colour.line, textStyle: { color: colour.ink, fontFamily },
    confine: true, transitionDuration: 0, extraCssText: "max-width: 24rem; white-space: normal;",
  };
}

function showTheme(theme, keep) {
  document.documentElement.dataset.theme = theme;
  byId("theme").textContent = theme === "dark" ? "Light" : "Dark";
  byId("theme").setAttribute("aria-label", `Switch to the ${theme === "dark" ? "light" : "dark"} theme`);
  if (keep) try { localStorage.setItem("dichotomies-theme", theme); } catch { /* not allowed in some frames */ }
  for (const { draw } of drawings) draw();
}

function startTheme() {
  const current = () => document.documentElement.dataset.theme;
  let beforePrinting = null;
  byId("theme").addEventListener("click", () => showTheme(current() === "dark" ? "light" : "dark", true));
  addEventListener("beforeprint", () => {
    beforePrinting = current();
    for (const { chart } of drawings) chart.resize(PAPER);
    showTheme("light", false);
  });
  addEventListener("afterprint", () => {
    for (const { chart } of drawings) chart.resize({ width: "auto", height: "auto" });
    showTheme(beforePrinting, false);
  });
  showTheme(current(), false);
}
