// Heat maps of shares: numbers and names where there is room, else on touch or by arrow keys.

// As much of a name as fits.
function fitted(context, text, width) {
  let most = Math.min(24, Array.from(text).length);
  while (most > 1 && context.measureText(short(text, most)).width > width) most--;
  return short(text, most);
}

function drawConfusion(into, list) {
  const { order, methods, pairs } = data.confusion;
  const n = order.length;
  const named = n <= 15;
  // a single sample is seen, but among 100 classes it is no snow
  const ink = (value) => (named ? 0.08 + 0.92 * value : 0.02 + 0.98 * value ** 0.7);
  const place = new Map(order.map((j, row) => [j, row]));
  const found = Object.fromEntries(data.methods.map((method) =>
    [method, new Map(methods[method].cells.map((cell, i) => [cell, methods[method].counts[i]]))]));
  for (const method of data.methods) {
    const count = (row, column) => found[method].get(order[row] * n + order[column]) ?? 0;
    const sums = order.map((j) => data.validation[j]);
    const share = (row, column) => (sums[row] ? count(row, column) / sums[row] : 0);
    const canvas = el("canvas", { tabindex: "0", role: "img", "aria-label": `Confusion matrix of ${NAMES[method]}, ${n} classes; arrow keys read the cells` });
    into.append(el("figure", {}, el("figcaption", {}, el("b", {}, dot(method), NAMES[method])), canvas));
    let side = 1;
    let left = 0;
    let at = null;
    const draw = onCanvas(canvas, named ? 0.86 : 1, (context, width, height) => {
      left = named ? Math.min(84, width * 0.2) : 0;
      const top = named ? height - 44 : height;
      side = Math.min((width - left) / n, top / n);
      context.font = `${Math.max(9, Math.min(12, side * 0.36))}px system-ui, sans-serif`;
      context.textBaseline = "middle";
      const [blue, card, black] = ["dos", "card", "ink"].map(colour);
      const turn = Number(colour("turn")); // where both are as easy to read
      const gap = n <= 40 ? 1 : 0;
      context.fillStyle = card;
      context.fillRect(left, 0, n * side, n * side);
      context.textAlign = "center";
      for (const [cell, times] of found[method]) {
        const [row, column] = [place.get(Math.floor(cell / n)), place.get(cell % n)];
        const value = share(row, column);
        context.globalAlpha = ink(value);
        context.fillStyle = blue;
        context.fillRect(left + column * side, row * side, side - gap, side - gap);
        context.globalAlpha = 1;
        if (!named) continue;
        context.fillStyle = value > turn ? card : black;
        context.fillText(short(whole(times), 6), left + (column + 0.5) * side, (row + 0.5) * side);
      }
      for (let row = 0; named && row < n; row++) {
        context.fillStyle = colour(rare.has(order[row]) ? "rare" : "ink");
        context.textAlign = "right";
        context.fillText(fitted(context, data.classes[order[row]], left - 8), left - 6, (row + 0.5) * side);
        context.textAlign = "center";
        context.fillText(fitted(context, data.classes[order[row]], side - 4), left + (row + 0.5) * side, n * side + 12);
      }
      context.strokeStyle = colour("line");
      context.strokeRect(left, 0, n * side, n * side);
      if (at) {
        context.strokeStyle = colour("rare");
        context.lineWidth = 2;
        context.strokeRect(left + at[1] * side, at[0] * side, side, side);
      }
    });
    const tell = (x, y) => {
      const [row, column] = at;
      const percent = (100 * share(row, column)).toFixed(1);
      showTip(`${short(data.classes[order[row]], 40)}\n→ ${short(data.classes[order[column]], 40)}\n${whole(count(row, column))} of ${whole(sums[row])}, ${percent} %`, x, y);
    };
    const leave = () => { at = null; hideTip(); draw(); };
    canvas.addEventListener("pointermove", (event) => {
      const box = canvas.getBoundingClientRect();
      const [column, row] = [event.clientX - box.left - left, event.clientY - box.top].map((v) => Math.floor(v / side));
      if (row < 0 || column < 0 || row >= n || column >= n) { leave(); return; }
      at = [row, column];
      draw();
      tell(event.clientX, event.clientY);
    });
    canvas.addEventListener("pointerleave", leave);
    canvas.addEventListener("blur", leave);
    canvas.addEventListener("keydown", (event) => {
      const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
      if (!step) return;
      event.preventDefault();
      at = at ? at.map((v, i) => Math.max(0, Math.min(n - 1, v + step[i]))) : [0, 0];
      draw();
      const box = canvas.getBoundingClientRect();
      tell(box.left + left + at[1] * side, box.top + at[0] * side);
    });
  }
  if (!pairs.length) { list.parentElement.hidden = true; return; }
  list.append(el("table", {}, el("caption", { class: "hidden" }, "The pairs confused most"),
    el("thead", {}, el("tr", {}, ["class", "taken for", ...data.methods.map((m) => NAMES[m])].map((t) => el("th", { scope: "col" }, t)))),
    el("tbody", {}, pairs.map(([j, i]) => el("tr", {}, el("th", { scope: "row" }, className(j)), el("td", {}, className(i)),
      data.methods.map((method) => el("td", {}, whole(found[method].get(j * n + i) ?? 0))))))));
}
