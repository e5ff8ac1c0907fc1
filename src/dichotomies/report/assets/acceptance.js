// Answers above a confidence: a slider, what it leaves, and the curve.
const accepted = report.accepted; // {rows, answered: [101], wrong: [101]}
const acceptIndex = () => Number(byId("accept").value);

function acceptText(at) {
  const answered = accepted.answered[at], wrong = accepted.wrong[at];
  if (!answered) return `${at} %: no row is answered`;
  return `${at} %: ${count(answered)} of ${count(accepted.rows)} rows answered (${percent(answered / accepted.rows)}), ` +
    `${count(wrong)} of them wrong (${percent(wrong / answered, 1)})`;
}

function drawAcceptance() {
  const colour = colours();
  const at = acceptIndex();
  byId("accept-text").textContent = acceptText(at);
  const points = accepted.answered.map((n, i) => [n / accepted.rows, n ? accepted.wrong[i] / n : null, i]).filter(([, y]) => y !== null);
  const chosen = points.filter(([, , i]) => i === at);
  acceptanceChart.setOption({
    animation: false, grid: { left: 56, right: 20, top: 20, bottom: 44 },
    xAxis: axis(colour, "rows answered", { ...AXIS, nameGap: 26 }),
    yAxis: axis(colour, "wrong among them", { type: "value", min: 0, nameGap: 40, axisLabel: { formatter: (v) => percent(v, v < 0.05 ? 1 : 0) } }),
    tooltip: { ...tooltipStyle(colour), trigger: "item", formatter: ({ data }) => acceptText(data[2]) },
    series: [
      { id: "curve", type: "line", data: points, symbolSize: 5, color: colour.after, lineStyle: { width: 2 } },
      { id: "chosen", type: "scatter", data: chosen, symbolSize: 14, color: colour.accent, z: 4 },
    ],
  });
}

const acceptanceChart = drawing("acceptance-chart", "svg", drawAcceptance);
byId("accept").addEventListener("input", drawAcceptance);
