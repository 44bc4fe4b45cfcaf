// Data, elements, numbers, colours and the tip: what every figure uses.
// Names from the data only ever become text nodes or attributes, never HTML.

const data = JSON.parse(document.getElementById("data").textContent);
const rare = new Set(data.minority);
const NAMES = { plain: "plain", dos: "DOS", difference: "difference" };
const MEASURES = { f1: "F1", precision: "Precision", recall: "Recall", auprc: "AUPRC" };
const inSection = (id, selector) => document.querySelector(`#${id} ${selector}`);

function build(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null));
  return element;
}
const el = (tag, attributes = {}, ...children) => build(document.createElement(tag), attributes, children);
const svg = (tag, attributes = {}, ...children) =>
  build(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

// .848, 1.000, – : as in the text above
function number(value) {
  if (value === null || value === undefined) return "–";
  return value.toFixed(3).replace(/^0\./, ".");
}
function signed(value) {
  if (value === null || value === undefined) return "–";
  const text = number(Math.abs(value));
  return text === ".000" ? text : (value > 0 ? "+" : "−") + text;
}
const whole = (value) => value.toLocaleString("en");
const short = (text, most) => {
  const letters = Array.from(text); // an emoji is one
  return letters.length > most ? letters.slice(0, most - 1).join("") + "…" : text;
};

// A class name that cannot turn the text around it, cut where it is too long.
const className = (j) =>
  el("span", { class: rare.has(j) ? "name rare" : "name", title: data.classes[j] }, el("bdi", {}, data.classes[j]));
const dot = (method) => el("i", { class: `dot ${method}` });

// Canvas knows no CSS variables; ask for them again whenever the theme changes.
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
const redraws = [];
const redrawAll = () => redraws.forEach((draw) => draw());

// A canvas as sharp as the screen, drawn again when its size or the theme changes.
function onCanvas(canvas, shape, draw) {
  const again = () => {
    const width = canvas.clientWidth;
    if (!width) return;
    const ratio = window.devicePixelRatio || 1;
    const height = Math.round(width * shape);
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    canvas.style.height = `${height}px`;
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    draw(context, width, height);
  };
  redraws.push(again);
  new ResizeObserver(again).observe(canvas.parentElement);
  again();
  return again;
}

const tip = document.getElementById("tip");
function showTip(text, x, y) {
  tip.textContent = text;
  tip.hidden = false;
  tip.style.left = `${Math.max(4, Math.min(x + 12, window.innerWidth - tip.offsetWidth - 8))}px`;
  tip.style.top = `${Math.max(4, Math.min(y + 14, window.innerHeight - tip.offsetHeight - 8))}px`;
}
const hideTip = () => { tip.hidden = true; };
