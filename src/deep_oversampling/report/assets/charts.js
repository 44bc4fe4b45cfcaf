// Lines and dots as SVG: precision-recall curves, reliability, rounds; and the bars of counts.

function ticks(low, high, about = 5) {
  const rough = (high - low) / about || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((f) => f * power).find((one) => one >= rough);
  const found = [];
  for (let t = Math.ceil(low / step - 1e-9); t * step <= high + step * 1e-9; t++) found.push(t * step);
  return found;
}

// lines: [{ x, y, method, second, dots, share, label }], y of null is a gap.
// Axes run over all points unless fixed; `diagonal` draws where x equals y.
function chart({ label, lines, x, y, xTitle, yTitle, diagonal, width, shape = 0.66 }) {
  const height = Math.round(width * shape);
  const box = { left: 46, right: width - 12, top: 12, bottom: height - 42 };
  const range = (fixed, values) => {
    if (fixed) return fixed;
    const there = values.filter((v) => v !== null);
    const [low, high] = [Math.min(...there), Math.max(...there)];
    return low === high ? [low - 0.5, high + 0.5] : [low, high];
  };
  const [x0, x1] = range(x, lines.flatMap((line) => line.x));
  const [y0, y1] = range(y, [0, ...lines.flatMap((line) => line.y)]);
  const px = (v) => box.left + ((v - x0) / (x1 - x0)) * (box.right - box.left);
  const py = (v) => box.bottom - ((v - y0) / (y1 - y0)) * (box.bottom - box.top);
  const tick = (v) => (Math.abs(v) >= 1000 ? whole(v) : String(+v.toPrecision(3)));
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
  for (const v of ticks(y0, y1)) {
    picture.append(
      svg("line", { class: "axis", x1: box.left, x2: box.right, y1: py(v), y2: py(v) }),
      svg("text", { x: box.left - 7, y: py(v) + 4, "text-anchor": "end" }, tick(v)));
  }
  for (const v of ticks(x0, x1, 5)) {
    picture.append(svg("text", { x: px(v), y: box.bottom + 18, "text-anchor": "middle" }, tick(v)));
  }
  picture.append(
    svg("text", { x: (box.left + box.right) / 2, y: height - 6, "text-anchor": "middle" }, xTitle),
    svg("text", { x: 12, y: (box.top + box.bottom) / 2, "text-anchor": "middle",
      transform: `rotate(-90 12 ${(box.top + box.bottom) / 2})` }, yTitle || ""));
  if (diagonal) picture.append(svg("line", { class: "diagonal", x1: px(x0), y1: py(x0), x2: px(x1), y2: py(x1) }));
  for (const line of lines) {
    const points = line.x.map((v, i) => [v, line.y[i], i]).filter((point) => point[1] !== null);
    const path = points.map(([a, b], i) => `${i ? "L" : "M"}${px(a).toFixed(1)} ${py(b).toFixed(1)}`).join("");
    const kind = `${line.method}${line.second ? " second" : ""}`;
    picture.append(svg("path", { class: kind, d: path }));
    if (!line.dots && points.length > 1) continue;
    for (const [a, b, i] of points) {
      const radius = line.share ? 3 + 9 * Math.sqrt(line.share[i]) : 3;
      const text = line.share ? `confidence ${number(a)}, accuracy ${number(b)}, ${(100 * line.share[i]).toFixed(1)} % of predictions` : `${tick(a)}: ${number(b)}`;
      const mark = svg("circle", { class: `${line.second ? "hollow" : "fill"} ${line.method}`, cx: px(a), cy: py(b), r: radius }, svg("title", {}, text));
      picture.append(mark);
    }
  }
  return picture;
}

// Drawn as wide as its place is when the page opens, so that letters keep their size.
const figureWidth = (figure) => Math.max(240, Math.min(560, figure.clientWidth));

const keyOf = (entries) =>
  el("div", { class: "key" }, entries.map(([method, text, second]) => el("span", {},
    svg("svg", { viewBox: "0 0 24 10", style: "display:inline-block;width:24px;height:10px;margin-right:7px", "aria-hidden": "true" },
      svg("path", { class: `${method}${second ? " second" : ""}`, d: "M0 5H24" })), text)));

function drawCounts(into) {
  const { order, before, after, k } = data.counts;
  const most = Math.max(1, ...before, ...after);
  const about = (j) => `${data.classes[j]}\n${whole(before[j])} samples, ${whole(after[j])} presented, k = ${k[j]}`;
  const legend = el("div", { class: "key" },
    el("span", {}, el("i", { class: "dot dos" }), "training samples"),
    el("span", {}, el("i", { class: "dot dos", style: "opacity:.35" }), "presented in a round of DOS"));
  if (order.length <= 30) {
    into.append(el("div", { class: "bars", role: "list" }, order.map((j) => [
      className(j),
      el("span", { class: "track", role: "img", "aria-label": about(j) },
        el("i", { class: "after", style: `width:${(100 * after[j]) / most}%` }),
        el("i", { class: "before", style: `width:${(100 * before[j]) / most}%` })),
      el("span", { class: "value" }, after[j] === before[j] ? whole(before[j]) : `${whole(before[j])} → ${whole(after[j])}`),
    ])), legend);
    return;
  }
  // too many for names: the shape of the tail, names on touch
  const [width, height] = [1000, 260];
  const step = width / order.length;
  const bar = (j, i, value, opacity) => svg("rect", { class: "fill dos", "fill-opacity": opacity, style: "stroke:none",
    x: i * step, width: Math.max(0.5, step * 0.85), y: height - (height * value) / most, height: (height * value) / most });
  into.append(svg("svg", { class: "columns", viewBox: `0 0 ${width} ${height + 12}`, preserveAspectRatio: "none", role: "img", "aria-label": "Samples of each class, frequent classes first, before and after over-sampling" },
    order.map((j, i) => svg("g", { onpointermove: (event) => showTip(about(j), event.clientX, event.clientY), onpointerleave: hideTip },
      svg("rect", { x: i * step, width: step, y: 0, height: height + 12, fill: "transparent", stroke: "none" }),
      bar(j, i, after[j], 0.32), bar(j, i, before[j], 1),
      rare.has(j) ? svg("rect", { x: i * step, width: step * 0.85, y: height + 5, height: 5, style: "fill:var(--rare)" }) : null))), legend);
}

function drawCurves(into, select) {
  const choices = [];
  if (data.minority.length > 1) choices.push(["rare", `rare classes, mean of ${data.minority.length}`]);
  data.counts.order.slice().reverse().forEach((j) => choices.push([String(j), data.classes[j] + (rare.has(j) ? " (rare)" : "")]));
  choices.forEach(([value, text]) => select.append(el("option", { value }, short(text, 60))));
  const draw = () => {
    const which = select.value;
    const lines = data.methods.map((method) => {
      const curve = which === "rare" ? data.curves[method].rare : data.curves[method].classes[+which];
      return curve && { x: curve.recall, y: curve.precision, method };
    }).filter(Boolean);
    const area = (method) => which === "rare" ? "" : `, AUPRC ${number(data.scores.auprc[method].value[+which])}`;
    const parts = lines.length
      ? [chart({ label: "Precision over recall", lines, x: [0, 1], y: [0, 1], xTitle: "recall", yTitle: "precision", width: figureWidth(into) }),
        keyOf(lines.map(({ method }) => [method, NAMES[method] + area(method)]))]
      : [el("p", { class: "note" }, "No validation sample of this class.")];
    into.replaceChildren(...parts);
  };
  select.addEventListener("change", draw);
  draw();
}

function drawReliability(into) {
  for (const method of data.methods) {
    const { before, after, temperatures } = data.reliability[method];
    const line = (one, second) => ({ x: one.confidence, y: one.accuracy, share: one.share, dots: true, method, second });
    const figure = el("figure", {}, el("figcaption", {}, el("b", {}, dot(method), NAMES[method])));
    into.append(figure);
    figure.append(
      chart({ label: `Reliability of ${NAMES[method]}`, lines: [line(before, false), line(after, true)], x: [0, 1], y: [0, 1], xTitle: "confidence", yTitle: "accuracy", diagonal: true, width: figureWidth(figure), shape: 0.76 }),
      keyOf([[method, `as it is, ECE ${number(before.ece)}`],
        [method, `scaled (T = ${temperatures.map((t) => t.toFixed(2)).join(", ")}), ECE ${number(after.ece)}`, true]]));
  }
}

function drawRounds(into) {
  for (const { title, about, lines } of data.rounds) {
    // where groups of classes are told apart, frequent and all are the dashed lines
    const drawn = lines.map((line) => ({ ...line, second: line.name !== "" && line.name !== "rare" }));
    const figure = el("figure", {}, el("figcaption", {}, el("b", {}, title), ` ${about}`));
    into.append(figure);
    figure.append(
      chart({ label: `${title} per round`, lines: drawn, xTitle: "round", y: title === "Validation F1" ? [0, 1] : null, width: figureWidth(figure) }),
      keyOf(drawn.map((line) => [line.method, `${NAMES[line.method]}${line.name && `, ${line.name}`}`, line.second])));
  }
}
