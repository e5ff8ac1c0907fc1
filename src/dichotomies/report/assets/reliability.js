// The reliability diagram with its depth slider, and confidence and accuracy by depth.
const cuts = report.cuts;
const stages = cuts.stages; // [{key, name, top_label: [[curve]], pooled: ..., accuracy, confidence, ece}]
const FEW = 10; // what rests on fewer predictions is drawn faintly, and no line leads through it
const AXIS = { type: "value", min: 0, max: 1, interval: 0.2, axisLabel: { formatter: (v) => `${Math.round(100 * v)} %` } };

const depthIndex = () => Number(byId("depth").value);
const reading = () => byId("reading").value;
const ecePlace = () => (reading() === "pooled" ? "ece_pooled" : "ece_top_label");

function axis(colour, name, more) {
  return {
    name, nameLocation: "middle", nameTextStyle: { color: colour.soft, fontFamily },
    axisLine: { lineStyle: { color: colour.line } }, splitLine: { lineStyle: { color: colour.quiet } }, ...more,
    axisLabel: { color: colour.soft, fontFamily, ...(more.axisLabel || {}) },
  };
}

function intervalBar(_, api) {
  const [x, low] = api.coord([api.value(0), api.value(1)]);
  const [, high] = api.coord([api.value(0), api.value(2)]);
  const line = (x1, y1, x2, y2) => ({ type: "line", shape: { x1, y1, x2, y2 }, style: { stroke: api.visual("color"), lineWidth: 1.5, opacity: api.value(3) < FEW ? 0.2 : 0.6 } });
  return { type: "group", children: [line(x, low, x, high), line(x - 3, low, x + 3, low), line(x - 3, high, x + 3, high)] };
}

// Points that rest on few predictions are small, so that their noise does not catch the eye.
function sizeByCount(points) {
  const most = Math.max(...points.map(([, , , , rows]) => rows), 1);
  return ([, , , , rows]) => 4 + 9 * Math.sqrt(rows / most);
}

// The curve of one stage at one depth: rows of [mean score, observed, lower, upper, count], empty bins left out.
function stageSeries(stage, colour) {
  const points = stage[reading()][depthIndex()];
  const shade = colour[stage.key];
  const marks = { name: stage.name, color: shade, encode: { x: 0, y: 1 }, z: 3, symbol: stage.key === "before" ? "rect" : "circle", symbolSize: sizeByCount(points) };
  return [
    { id: `${stage.key}-intervals`, type: "custom", renderItem: intervalBar, silent: true, color: shade, z: 2,
      data: points.map(([x, , low, high, rows]) => [x, low, high, rows]), tooltip: { show: false } },
    { ...marks, id: stage.key, type: "line", data: points.filter(([, , , , rows]) => rows >= FEW),
      lineStyle: { width: 1.5, type: stage.key === "before" ? "dashed" : "solid" } },
    { ...marks, id: `${stage.key}-few`, type: "scatter", data: points.filter(([, , , , rows]) => rows < FEW), itemStyle: { opacity: 0.4 } },
    { id: `${stage.key}-counts`, type: "bar", xAxisIndex: 1, yAxisIndex: 1, color: shade, barGap: "0%",
      data: points.map(([x, , , , rows]) => [x, rows]), barWidth: stages.length > 1 ? 5 : 9, itemStyle: { opacity: 0.8 },
      name: stage.name },
  ];
}

function diagonal(colour) {
  return { id: "diagonal", type: "line", data: [[0, 0], [1, 1]], symbol: "none", silent: true, tooltip: { show: false },
    lineStyle: { color: colour.soft, width: 1, type: "dotted" }, z: 1 };
}

function pointText({ seriesName, value }) {
  if (value.length < 5) return `${seriesName}: ${count(value[1])} predictions`;
  const [said, right, low, high, rows] = value;
  return `${seriesName}<br>confidence ${percent(said, 1)}, accuracy ${percent(right, 1)} (${percent(low)} to ${percent(high)})<br>${count(rows)} predictions`;
}

function drawReliability() {
  const colour = colours();
  const narrow = reliabilityChart.getWidth() < 460; // there the legend takes two lines
  reliabilityChart.setOption({
    animation: !stillness, animationDurationUpdate: 250, textStyle: { fontFamily },
    grid: [narrow ? { top: 56, height: "52%" } : { top: 34, height: "58%" }, { bottom: 42, height: "16%" }].map((place) => ({ left: 70, right: 20, outerBoundsMode: "none", ...place })),
    legend: { show: stages.length > 1, data: stages.map((s) => s.name), top: 0, textStyle: { color: colour.ink, fontFamily } },
    tooltip: { ...tooltipStyle(colour), trigger: "item", formatter: pointText },
    xAxis: [axis(colour, "", { ...AXIS, gridIndex: 0, axisLabel: { show: false } }), axis(colour, "confidence", { ...AXIS, gridIndex: 1, nameGap: 26 })],
    yAxis: [
      axis(colour, "accuracy", { ...AXIS, gridIndex: 0, nameGap: 44 }),
      axis(colour, "", { type: "value", gridIndex: 1, splitNumber: 2, axisLabel: { formatter: (v) => (v >= 1e6 ? `${v / 1e6} M` : v >= 1e3 ? `${v / 1e3} k` : v) } }),
    ],
    series: [diagonal(colour), ...stages.flatMap((stage) => stageSeries(stage, colour))],
  });
}

function depthLines(stage, colour) {
  const shade = colour[stage.key];
  const line = (id, name, values, type) => ({ id, name, type: "line", color: shade, symbolSize: 5,
    data: values.map((value, i) => [cuts.depths[i], value]), lineStyle: { width: 2, type },
    symbol: type === "solid" ? "circle" : "emptyCircle" });
  return [line(`${stage.key}-right`, `accuracy, ${stage.short}`, stage.accuracy, "solid"),
    line(`${stage.key}-sure`, `confidence, ${stage.short}`, stage.confidence, "dashed")];
}

function drawDepths() {
  const colour = colours();
  const series = stages.flatMap((stage) => depthLines(stage, colour));
  series[0].markLine = { symbol: "none", silent: true, animation: false, label: { show: false },
    lineStyle: { color: colour.ink, type: "solid", width: 1 }, data: [{ xAxis: cuts.depths[depthIndex()] }] };
  const last = cuts.depths[cuts.depths.length - 1];
  depthChart.setOption({
    animation: false, textStyle: { fontFamily },
    grid: { outerBoundsMode: "none", left: 52, right: 14, top: stages.length > 1 ? 52 : 34, bottom: 42 },
    legend: { top: 0, itemWidth: 30, textStyle: { color: colour.ink, fontFamily } },
    tooltip: { ...tooltipStyle(colour), trigger: "axis", valueFormatter: (v) => percent(v, 1) },
    xAxis: axis(colour, "number of decisions", { type: "value", min: cuts.depths[0], max: Math.max(last, 2), minInterval: 1, nameGap: 26, axisLabel: { hideOverlap: true } }),
    yAxis: axis(colour, "", AXIS),
    series,
  });
}

function describeDepth() {
  const i = depthIndex();
  const [groups, last] = [cuts.groups[i], cuts.depths.length - 1];
  const what = i === last ? `all ${classes(report.tree.names.length)}` : `${count(groups)} groups of classes`;
  byId("depth-text").textContent = `${cuts.depths[i]} of ${cuts.depths[last]}: ${what}`;
  byId("depth").setAttribute("aria-valuetext", byId("depth-text").textContent);
  const gaps = stages.map((s) => `${s.name}: accuracy ${percent(s.accuracy[i], 1)}, confidence ${percent(s.confidence[i], 1)}, calibration error ${percent(s[ecePlace()][i], 1)}`);
  byId("reliability-chart").setAttribute("aria-label", `Reliability diagram after ${byId("depth-text").textContent}. ${gaps.join(". ")}.`);
}

function showDepth() {
  describeDepth();
  drawReliability();
  drawDepths();
}

const reliabilityChart = drawing("reliability-chart", "svg", drawReliability);
const depthChart = drawing("depth-chart", "svg", drawDepths);
byId("depth").addEventListener("input", showDepth);
byId("reading").addEventListener("change", showDepth);
depthChart.getZr().on("click", (event) => {
  const [x] = depthChart.convertFromPixel({ gridIndex: 0 }, [event.offsetX, event.offsetY]);
  const gaps = cuts.depths.map((depth) => Math.abs(depth - x));
  byId("depth").value = gaps.indexOf(Math.min(...gaps));
  showDepth();
});
describeDepth();
