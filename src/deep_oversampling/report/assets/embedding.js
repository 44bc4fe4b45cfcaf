// The embedding: points that move from moment to moment, classes that can be hidden.

function drawEmbedding(section) {
  const { titles, labels, points, of } = data.embedding;
  const [slider, output, play, legend, canvas] = ["input", "output", ".play", ".legend", "canvas"].map((s) => section.querySelector(s));
  // rare classes choose first, so that theirs are told apart most easily
  const hues = ["#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C6BB1", "#7F7F7F"];
  const shapes = ["circle", "square", "triangle", "diamond"];
  const present = new Set(labels);
  const classes = [...data.minority, ...data.counts.order.filter((j) => !rare.has(j))].filter((j) => present.has(j));
  const look = new Map(classes.map((j, i) => [j, { hue: hues[i % 8], shape: shapes[Math.floor(i / 8) % 4] }]));
  const hidden = new Set();
  const still = window.matchMedia("(prefers-reduced-motion: reduce)");
  // frequent classes first: rare ones lie on top
  const order = labels.map((_, i) => i).sort((a, b) => rare.has(labels[a]) - rare.has(labels[b]));
  let now = points[0].slice();
  let frame = 0;
  let playing = 0;

  function mark(context, shape, x, y, r) {
    context.beginPath();
    if (shape === "circle") context.arc(x, y, r, 0, 2 * Math.PI);
    else if (shape === "square") context.rect(x - r * 0.9, y - r * 0.9, r * 1.8, r * 1.8);
    else if (shape === "triangle") { context.moveTo(x, y - r * 1.2); context.lineTo(x + r * 1.1, y + r * 0.8); context.lineTo(x - r * 1.1, y + r * 0.8); context.closePath(); }
    else { context.moveTo(x, y - r * 1.3); context.lineTo(x + r * 1.3, y); context.lineTo(x, y + r * 1.3); context.lineTo(x - r * 1.3, y); context.closePath(); }
  }
  const draw = onCanvas(canvas, 0.75, (context, width, height) => {
    const [sx, sy] = [(width - 32) / 1200, (height - 32) / 900]; // points lie within 1200 × 900
    for (const i of order) {
      const j = labels[i];
      if (hidden.has(j)) continue;
      const big = rare.has(j);
      const { hue, shape } = look.get(j);
      context.globalAlpha = big ? 0.95 : 0.38;
      context.fillStyle = hue;
      mark(context, shape, 16 + now[2 * i] * sx, height - 16 - now[2 * i + 1] * sy, big ? 4.2 : 2.8);
      context.fill();
      if (big) { context.lineWidth = 1; context.strokeStyle = colour("card"); context.stroke(); }
    }
    context.globalAlpha = 1;
  });

  function move(to) {
    output.textContent = titles[to];
    slider.setAttribute("aria-valuetext", titles[to]);
    cancelAnimationFrame(frame);
    const [from, goal] = [now.slice(), points[to]];
    if (still.matches) { now = goal.slice(); draw(); return; }
    const start = performance.now();
    const step = (time) => {
      const share = Math.min(1, Math.max(0, (time - start) / 450));
      const eased = share * share * (3 - 2 * share);
      now = from.map((v, i) => v + (goal[i] - v) * eased);
      draw();
      if (share < 1) frame = requestAnimationFrame(step);
    };
    frame = requestAnimationFrame(step);
  }
  const stop = () => { clearInterval(playing); playing = 0; play.textContent = "Play"; };
  slider.max = titles.length - 1;
  slider.addEventListener("input", () => { stop(); move(+slider.value); });
  play.addEventListener("click", () => {
    if (playing) { stop(); return; }
    const next = () => {
      slider.value = +slider.value === titles.length - 1 ? 0 : +slider.value + 1;
      move(+slider.value);
      if (+slider.value === titles.length - 1) stop();
    };
    play.textContent = "Stop";
    playing = setInterval(next, 900);
    next();
  });
  if (titles.length === 1) section.querySelectorAll(".play, label").forEach((one) => { one.hidden = true; one.style.display = "none"; });

  const buttons = new Map();
  const update = () => {
    buttons.forEach((button, j) => button.setAttribute("aria-pressed", !hidden.has(j)));
    draw();
  };
  const only = (keep) => () => { classes.forEach((j) => (keep(j) ? hidden.delete(j) : hidden.add(j))); update(); };
  const quick = [["all", () => true], ["rare", (j) => rare.has(j)], ["none", () => false]];
  legend.append(el("div", { class: "quick" }, quick.map(([text, keep]) => el("button", { type: "button", onclick: only(keep) }, text))));
  for (const j of classes) {
    const { hue, shape } = look.get(j);
    const sign = el("canvas", { width: 28, height: 28, style: "width:14px;height:14px;flex:none;border:0;background:none;border-radius:0", "aria-hidden": "true" });
    const context = sign.getContext("2d");
    context.fillStyle = hue;
    mark(context, shape, 14, 14, rare.has(j) ? 10 : 7);
    context.fill();
    const toggle = () => { if (!hidden.delete(j)) hidden.add(j); update(); };
    buttons.set(j, el("button", { type: "button", "aria-pressed": "true", onclick: toggle }, sign, className(j)));
    legend.append(buttons.get(j));
  }
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", `Embeddings of ${labels.length} validation samples in two dimensions`);
  section.querySelector(".note").textContent = `Validation samples in two dimensions, by one projection for all moments; rare classes are drawn larger, outliers on the edge${of > labels.length ? `. ${whole(labels.length)} of ${whole(of)} samples are shown` : ""}.`;
  move(0);
}
