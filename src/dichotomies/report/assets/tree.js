// The ledger on the tree, drawn as an icicle: a box is a range of leaves at a depth. A branch is named as
// in the data: a node by its number, the leaf at position p by ~p, which is negative.
const tree = report.tree;
const n_leaves = tree.names.length;
const isLeaf = (branch) => branch < 0;
const startOf = (branch) => (isLeaf(branch) ? ~branch : tree.start[branch]);
const stopOf = (branch) => (isLeaf(branch) ? ~branch + 1 : tree.stop[branch]);
const sizeOf = (branch) => stopOf(branch) - startOf(branch);
const parentOf = (branch) => (isLeaf(branch) ? leafParent[~branch] : tree.parent[branch]);
const depthOf = (branch) => (isLeaf(branch) ? tree.depth[leafParent[~branch]] + 1 : tree.depth[branch]);
const SEQUENTIAL = { // cividis, readable without telling red from green; the costly end stands out from the page
  light: ["#fdf1b8", "#e1cc55", "#a69d75", "#707173", "#3b496c", "#00224e"],
  dark: ["#20304f", "#3b496c", "#707173", "#a69d75", "#e1cc55", "#fdea45"],
};
const DIVERGING = { light: ["#b35806", "#f1a340", "#f0efec", "#67a9cf", "#2166ac"], dark: ["#f1a340", "#8a5a24", "#333f4b", "#2f6f9f", "#79bfee"] };
const MOST_LEVELS = 32; // that fill the drawing; more need a taller one
const TALLEST = 500; // levels: browsers limit the height of a drawing
const LEVEL_HEIGHT = 15;
const CRUMBS = 12;

const leafParent = new Array(n_leaves).fill(-1);
const heights = new Array(tree.start.length).fill(0); // levels below a node, its own leaves included
for (let node = tree.start.length - 1; node >= 0; node--) {
  for (const child of [tree.left[node], tree.right[node]]) {
    if (isLeaf(child)) leafParent[~child] = node;
    heights[node] = Math.max(heights[node], 1 + (isLeaf(child) ? 0 : heights[child]));
  }
}

let zoomed = 0; // the node that fills the drawing
let selected = 0; // the branch that the panel describes
let mostLevels = MOST_LEVELS;

function pathTo(branch) {
  const path = [];
  for (let at = branch; at !== 0; at = parentOf(at)) path.unshift(at);
  return [0, ...path];
}

function title(branch) {
  if (isLeaf(branch)) return tree.names[~branch];
  const [left, right] = [tree.left[branch], tree.right[branch]];
  return `Decision ${branch}: ${count(sizeOf(left))} or ${count(sizeOf(right))} of ${classes(sizeOf(branch))}`;
}

function someNames(branch, most) {
  const names = tree.names.slice(startOf(branch), Math.min(stopOf(branch), startOf(branch) + most)).map(shorten);
  return names.join(", ") + (sizeOf(branch) > most ? ", …" : "");
}

// Names and values of what is known about a branch, for the panel and the tooltip.
function factsOf(branch) {
  if (isLeaf(branch)) {
    const rows = tree.class_rows[~branch];
    const facts = [["Rows", count(rows)]];
    if (rows > 0) facts.push(["Accuracy", percent(tree.class_right[~branch])], ["Loss per row, final", `${nats(tree.class_nll[~branch])} nats`]);
    return facts;
  }
  const share = report.total > 0 ? percent(tree.nll[branch] / report.total, 1) : "–";
  const facts = [["Rows", count(tree.rows[branch])], ["Share of all loss", share]];
  for (const { short, values } of tree.colourings) if (short) facts.push([short, `${nats(values[branch])} nats`]);
  return facts;
}

// ------------------------------------------------------------------ drawing

function box(params, api) {
  const [left, top] = api.coord([api.value(0), api.value(2)]);
  const [right, bottom] = api.coord([api.value(1), api.value(2) + 1]);
  const area = params.coordSys;
  const x = Math.max(left, area.x);
  const width = Math.min(right, area.x + area.width) - x;
  if (width < 0.35 || bottom < area.y || top >= area.y + area.height) return null;
  const branch = api.value(4);
  const gap = width > 3 ? 0.5 : 0;
  const shape = { x: x + gap, y: top + 0.5, width: width - 2 * gap, height: bottom - top - 1 };
  const fill = isLeaf(branch) || Number.isNaN(api.value(3)) ? leafColour : api.visual("color");
  const style = { fill };
  if (branch === selected) Object.assign(style, { stroke: inkColour, lineWidth: 2.5 });
  return { type: "rect", shape, style, z2: branch === selected ? 5 : 1, emphasis: { style: { stroke: inkColour, lineWidth: 1.5 } }, ...label(branch, shape, fill) };
}

function label(branch, shape, fill) {
  const text = isLeaf(branch) ? tree.names[~branch] : count(sizeOf(branch));
  const fits = shape.width > 8 * text.length + 2 || (isLeaf(branch) && shape.width > 28); // a number is never cut
  if (!fits || shape.height < 11) return {};
  const light = echarts.color.lum(fill, 1) > 0.45;
  return {
    textContent: { style: { text, width: shape.width - 2, overflow: "truncate", ellipsis: "…", fontSize: Math.min(12, shape.height - 3), fontFamily, fill: light ? "#16202b" : "#f5f7f9" } },
    textConfig: { position: "inside" },
  };
}

let leafColour, inkColour; // read once per drawing, not once per box

function scaleOf(colouring) {
  const finite = colouring.values.filter((value) => value !== null).map(colouring.diverging ? Math.abs : (v) => v).sort((a, b) => a - b);
  // A few extreme nodes would make all others look alike.
  const most = finite[Math.floor(0.99 * (finite.length - 1))] || finite[finite.length - 1] || 1e-6;
  return colouring.diverging ? [-most, most] : [0, most];
}

function boxes(branches, values) {
  return branches.map((branch) => [startOf(branch), stopOf(branch), depthOf(branch), values ? values[branch] ?? NaN : 0, branch]);
}

const NODES = tree.start.map((_, node) => node);
const LEAVES = tree.names.map((_, position) => ~position);

function drawTree() {
  const colour = colours();
  [leafColour, inkColour] = [colour.leaf, colour.ink];
  const colouring = tree.colourings[Number(byId("colour").value) || 0];
  const [low, high] = scaleOf(colouring);
  const palette = (colouring.diverging ? DIVERGING : SEQUENTIAL)[document.documentElement.dataset.theme];
  const series = { type: "custom", renderItem: box, clip: true, dimensions: ["start", "stop", "depth", "value", "branch"], encode: { x: [0, 1], y: 2, tooltip: [] } };
  treeChart.setOption({
    animation: false, textStyle: { fontFamily },
    grid: { outerBoundsMode: "none", left: 30, right: 2, top: 6, bottom: 58 },
    tooltip: { ...tooltipStyle(colour), formatter: ({ value }) => tooltip(value[4]) },
    visualMap: {
      type: "continuous", min: low, max: high, dimension: 3, seriesIndex: 0, inRange: { color: palette }, calculable: false,
      orient: "horizontal", left: 28, bottom: 2, itemWidth: 12, itemHeight: 140, hoverLink: false, precision: 3,
      text: [`≥ ${high.toPrecision(2)} nats`, colouring.diverging ? `${low.toPrecision(2)}` : "0"],
      textStyle: { color: colour.soft, fontFamily },
    },
    xAxis: { type: "value", show: false },
    yAxis: { type: "value", inverse: true, minInterval: 1, splitLine: { show: false }, axisLine: { show: false }, axisTick: { show: false }, axisLabel: { color: colour.soft, fontFamily, showMaxLabel: false } },
    series: [{ ...series, id: "decisions", data: boxes(NODES, colouring.values) }, { ...series, id: "classes", data: boxes(LEAVES, null) }],
  });
  zoomTo(zoomed);
}

function tooltip(branch) {
  const lines = factsOf(branch).map(([name, value]) => element("div", {}, `${name}: ${value}`));
  const heading = element("strong", {}, shorten(title(branch)));
  const names = isLeaf(branch) ? [] : [element("div", {}, `${someNames(tree.left[branch], 3)} | ${someNames(tree.right[branch], 3)}`)];
  return element("div", {}, heading, ...lines, ...names);
}

function zoomTo(node) {
  zoomed = node;
  const levels = Math.min(heights[node] + 1, mostLevels);
  treeChart.setOption({
    xAxis: { min: tree.start[node], max: tree.stop[node] },
    yAxis: { min: tree.depth[node], max: tree.depth[node] + levels },
  });
  byId("out").disabled = byId("whole").disabled = node === 0;
  showLeftOut(heights[node] + 1, levels);
}

function showLeftOut(all, levels) {
  byId("left-out").hidden = all <= MOST_LEVELS;
  const text = all > levels ? `${count(all - levels)} of ${count(all)} levels are left out below; click a box to open it.` : `All ${count(all)} levels are shown.`;
  byId("left-out-text").textContent = text;
  byId("all-levels").textContent = mostLevels > MOST_LEVELS ? "Show fewer levels" : all > TALLEST ? `Show ${TALLEST} levels` : `Show all ${count(all)} levels`;
}

// Make the drawing as tall as its levels need, or as it was.
function toggleLevels() {
  mostLevels = mostLevels > MOST_LEVELS ? MOST_LEVELS : TALLEST;
  const levels = Math.min(heights[0] + 1, mostLevels);
  byId("tree").style.height = mostLevels > MOST_LEVELS ? `${LEVEL_HEIGHT * levels + 64}px` : "";
  treeChart.resize();
  zoomTo(zoomed);
}

// ------------------------------------------------------------------ choosing a branch

function select(branch) {
  selected = branch;
  showCrumbs();
  showDetails();
  byId("announce").textContent = [title(branch), ...factsOf(branch).map(([name, value]) => `${name} ${value}`)].join(". ");
}

// Select a branch and zoom so that it can be read: a leaf, or a small branch, with its surroundings.
function show(branch) {
  let around = isLeaf(branch) ? parentOf(branch) : branch;
  while (isLeaf(branch) && sizeOf(around) < 8 && around !== 0) around = parentOf(around);
  select(branch);
  zoomTo(around);
}

function zoomOut() {
  if (zoomed !== 0) { select(parentOf(zoomed)); zoomTo(parentOf(zoomed)); }
}

function showCrumbs() {
  const crumbs = pathTo(selected).map((branch) => {
    const text = branch === 0 ? `All ${classes(n_leaves)}` : isLeaf(branch) ? tree.names[~branch] : count(sizeOf(branch));
    const attributes = { type: "button", title: shorten(title(branch)), "aria-label": branch === 0 || isLeaf(branch) ? text : classes(sizeOf(branch)), onclick: () => show(branch) };
    if (branch === selected) attributes["aria-current"] = "true";
    return element("li", {}, element("button", attributes, text));
  });
  const between = crumbs.length - CRUMBS; // of a deep path the middle is left out
  if (between > 1) crumbs.splice(3, between, element("li", {}, `… ${count(between)} more decisions …`));
  byId("crumbs").replaceChildren(...crumbs);
}

function showDetails() {
  const list = element("dl", {}, ...factsOf(selected).flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]));
  const parts = [element("h3", {}, title(selected)), list];
  if (isLeaf(selected)) parts.push(...decisionsAbove(selected));
  else for (const [side, child] of [["Left", tree.left[selected]], ["Right", tree.right[selected]]]) {
    const open = element("button", { class: "link", type: "button", onclick: () => show(child) }, `${side}, ${classes(sizeOf(child))}`);
    parts.push(element("p", {}, open, element("span", { class: "note" }, someNames(child, 8))));
  }
  byId("details").replaceChildren(...parts);
}

function decisionsAbove(leaf) {
  const items = pathTo(leaf).slice(0, -1).map((node) => element("li", {},
    element("button", { class: "link", type: "button", onclick: () => show(node) }, `${classes(sizeOf(node))}`),
    element("span", {}, nats(tree.colourings[0].values[node]))));
  return [element("p", { class: "note" }, "Decisions on the path, with the loss per row that reaches them:"), element("ol", {}, ...items)];
}

// ------------------------------------------------------------------ keyboard

function neighbour(branch, step) {
  const position = step > 0 ? stopOf(branch) : startOf(branch) - 1;
  if (position < tree.start[zoomed] || position >= tree.stop[zoomed]) return branch;
  let at = ~position; // climb from the leaf beside it to the same depth
  while (depthOf(at) > depthOf(branch)) at = parentOf(at);
  return at;
}

const MOVES = {
  ArrowUp: () => moveTo(selected === 0 ? 0 : parentOf(selected)),
  ArrowDown: () => moveTo(isLeaf(selected) ? selected : tree.left[selected]),
  ArrowLeft: () => moveTo(neighbour(selected, -1)),
  ArrowRight: () => moveTo(neighbour(selected, 1)),
  Enter: () => { show(selected); redrawSelection(); },
  Escape: () => { zoomOut(); redrawSelection(); },
  Home: () => { show(0); redrawSelection(); },
};

function moveTo(branch) {
  select(branch);
  const inside = startOf(branch) >= tree.start[zoomed] && stopOf(branch) <= tree.stop[zoomed];
  if (!inside || depthOf(branch) < tree.depth[zoomed]) zoomTo(isLeaf(branch) ? parentOf(branch) : branch);
  redrawSelection();
}

// Series are drawn again only when they are given anew.
function redrawSelection() {
  const values = tree.colourings[Number(byId("colour").value) || 0].values;
  treeChart.setOption({ series: [{ id: "decisions", data: boxes(NODES, values) }, { id: "classes", data: boxes(LEAVES, null) }] });
}

const treeChart = drawing("tree", "canvas", drawTree);
byId("colour").append(...tree.colourings.map(({ label: text }, i) => element("option", { value: i }, text)));
byId("colour").addEventListener("change", drawTree);
byId("out").addEventListener("click", () => { zoomOut(); redrawSelection(); });
byId("whole").addEventListener("click", () => { show(0); redrawSelection(); });
byId("all-levels").addEventListener("click", toggleLevels);
byId("tree").addEventListener("keydown", (event) => {
  if (MOVES[event.key]) { event.preventDefault(); MOVES[event.key](); }
});
treeChart.on("click", ({ value }) => { show(value[4]); redrawSelection(); });
select(0);
