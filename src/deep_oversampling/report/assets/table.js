// The table of classes: one measure at a time, sorted by any column; all of them as CSV.

function drawTable(into, choice) {
  let measure = "f1";
  const shown = data.methods.length === 2 ? [...data.methods, "difference"] : data.methods;
  const estimate = (kind) => data.scores[measure][kind];
  const columns = [
    { title: "class", value: (j) => data.classes[j] },
    ...shown.map((kind) => ({ title: NAMES[kind], kind, value: (j) => estimate(kind).value[j] })),
    { title: "training", value: (j) => data.counts.before[j] },
    { title: "validation", value: (j) => data.validation[j] },
  ];
  let sorted = { column: columns.length - 2, down: false }; // the rarest first

  // both intervals on a line from 0 to 1
  function range(j) {
    const rows = data.methods.map((method, i) => {
      const { value, low, high } = estimate(method);
      if (value[j] === null) return null;
      const y = 7 + 10 * i;
      return svg("g", {}, svg("line", { class: method, x1: 120 * low[j], x2: 120 * high[j], y1: y, y2: y, "stroke-width": 2 }),
        svg("circle", { class: `fill ${method}`, cx: 120 * value[j], cy: y, r: 3.5 }));
    });
    return svg("svg", { viewBox: "-4 0 128 24", style: "width:128px;height:24px", "aria-hidden": "true" },
      [0, 60, 120].map((x) => svg("line", { class: "axis", x1: x, x2: x, y1: 0, y2: 24 })), rows);
  }
  function cell(column, j) {
    if (!column.kind) return el("td", {}, whole(column.value(j)));
    const { value, low, high } = estimate(column.kind);
    const show = column.kind === "difference" ? signed : number;
    if (value[j] === null) return el("td", {}, "–");
    return el("td", {}, show(value[j]), el("small", {}, `${show(low[j])} to ${show(high[j])}`));
  }
  function compare(a, b) {
    const value = columns[sorted.column].value;
    const [x, y] = sorted.down ? [value(b), value(a)] : [value(a), value(b)];
    if (value(a) === null || value(b) === null) return (value(a) === null) - (value(b) === null); // last
    return typeof x === "string" ? x.localeCompare(y, undefined, { numeric: true }) : x - y;
  }
  function draw(focus) {
    const heads = columns.map((column, i) => {
      const own = i === sorted.column;
      const arrow = own ? (sorted.down ? " ↓" : " ↑") : "";
      const sort = () => { sorted = { column: i, down: own ? !sorted.down : Boolean(column.kind) }; draw(i); };
      return el("th", { scope: "col", "aria-sort": own ? (sorted.down ? "descending" : "ascending") : "none" },
        el("button", { type: "button", onclick: sort }, column.kind && column.kind !== "difference" ? dot(column.kind) : "", column.title + arrow));
    });
    const before = shown.length + 1; // the columns that stand before the picture of them
    heads.splice(before, 0, el("th", { scope: "col", class: "picture" }, el("span", {}, "0"), el("span", {}, "1")));
    const order = data.classes.map((_, j) => j).sort(compare);
    const rows = order.map((j) => {
      const cells = columns.slice(1).map((column) => cell(column, j));
      cells.splice(before - 1, 0, el("td", { class: "picture" }, range(j)));
      return el("tr", {}, el("th", { scope: "row" }, className(j), rare.has(j) ? el("small", { class: "rare" }, " rare") : ""), cells);
    });
    into.replaceChildren(el("table", {}, el("caption", { class: "hidden" }, `${MEASURES[measure]} of every class`),
      el("thead", {}, el("tr", {}, heads)), el("tbody", {}, rows)));
    if (focus !== undefined) into.querySelectorAll("thead button")[focus].focus();
  }
  for (const [name, title] of Object.entries(MEASURES)) {
    const choose = (event) => {
      measure = name;
      choice.querySelectorAll("button").forEach((one) => one.setAttribute("aria-pressed", one === event.currentTarget));
      draw();
    };
    choice.append(el("button", { type: "button", "aria-pressed": name === measure, onclick: choose }, title));
  }
  draw();
}

function csv() {
  // a spreadsheet would run a name such as =1+1; a number such as -1 stays as it is
  const safe = (text) => (/^[=@\t\r]|^[+-](?![\d.]+$)/.test(text) ? `'${text}` : text);
  const quoted = (value) => (typeof value === "string" ? `"${safe(value).replaceAll('"', '""')}"` : value ?? "");
  const kinds = Object.keys(MEASURES).flatMap((measure) => Object.keys(data.scores[measure]).flatMap((kind) =>
    ["value", "low", "high"].map((part) => [`${measure}_${kind}${part === "value" ? "" : `_${part}`}`, data.scores[measure][kind][part]])));
  const head = ["class", "rare", "training", "presented", "k", "validation", ...kinds.map(([name]) => name)];
  const rows = data.classes.map((name, j) => [name, rare.has(j) ? 1 : 0, data.counts.before[j], data.counts.after[j],
    data.counts.k[j], data.validation[j], ...kinds.map(([, values]) => values[j])]);
  return [head, ...rows].map((row) => row.map(quoted).join(",")).join("\r\n") + "\r\n";
}

function download() {
  const address = URL.createObjectURL(new Blob(["\ufeff", csv()], { type: "text/csv" }));
  el("a", { href: address, download: "classes.csv" }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}
