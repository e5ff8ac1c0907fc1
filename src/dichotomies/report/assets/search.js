// Searching for a class, and the links from tables into the tree.
const MOST_MATCHES = 12;
const folded = tree.names.map((name) => name.toLowerCase());
let matches = []; // leaf positions that are listed
let active = -1;

// Names that are the text come first, then those that begin with it, then those that contain it.
function find(text) {
  const wanted = text.trim().toLowerCase();
  if (!wanted) return [];
  const rank = (name) => (name === wanted ? 0 : name.startsWith(wanted) ? 1 : name.includes(wanted) ? 2 : 3);
  const groups = [[], [], []];
  folded.forEach((name, position) => { const r = rank(name); if (r < 3) groups[r].push(position); });
  return groups.flat();
}

function listMatches() {
  const text = byId("search").value;
  const found = find(text);
  matches = found.slice(0, MOST_MATCHES);
  active = matches.length ? 0 : -1;
  const items = matches.map((position, i) => element("li", { role: "option", id: `match-${i}`, "aria-selected": i === active, onmousedown: (event) => { event.preventDefault(); choose(i); } }, tree.names[position]));
  if (text.trim() && found.length !== matches.length) items.push(element("li", { "aria-disabled": "true" }, `and ${count(found.length - matches.length)} more`));
  if (text.trim() && !found.length) items.push(element("li", { "aria-disabled": "true" }, "No class matches"));
  byId("matches").replaceChildren(...items);
  open(items.length > 0);
}

function open(visible) {
  byId("matches").hidden = !visible;
  byId("search").setAttribute("aria-expanded", visible);
  if (visible && active >= 0) byId("search").setAttribute("aria-activedescendant", `match-${active}`);
  else byId("search").removeAttribute("aria-activedescendant");
}

function activate(step) {
  if (!matches.length) return;
  byId(`match-${active}`).setAttribute("aria-selected", "false");
  active = (active + step + matches.length) % matches.length;
  byId(`match-${active}`).setAttribute("aria-selected", "true");
  open(true);
}

function choose(i) {
  if (i < 0 || i >= matches.length) return;
  byId("search").value = tree.names[matches[i]];
  open(false);
  show(~matches[i]);
  redrawSelection();
}

const SEARCH_KEYS = { ArrowDown: () => activate(1), ArrowUp: () => activate(-1), Enter: () => choose(active), Escape: () => open(false) };

byId("search").addEventListener("input", listMatches);
byId("search").addEventListener("focus", listMatches);
byId("search").addEventListener("blur", () => open(false));
byId("search").addEventListener("keydown", (event) => {
  if (SEARCH_KEYS[event.key]) { event.preventDefault(); SEARCH_KEYS[event.key](); }
});

document.addEventListener("click", (event) => {
  const link = event.target.closest("[data-leaf], [data-node]");
  if (!link) return;
  show(link.dataset.leaf === undefined ? Number(link.dataset.node) : ~Number(link.dataset.leaf));
  redrawSelection();
  byId("ledger").scrollIntoView();
  byId("tree").focus({ preventScroll: true });
});

startTheme();
