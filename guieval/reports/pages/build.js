// How nodes are built: foreign words only ever become text nodes.

const $ = (id) => document.getElementById(id);

function fill(node, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") node.addEventListener(name, value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((each) => each !== null && each !== undefined && each !== false));
  return node;
}
const el = (tag, props, ...children) => fill(document.createElement(tag), props, children);
const svg = (tag, props, ...children) => fill(document.createElementNS("http://www.w3.org/2000/svg", tag), props, children);
const foreign = (text, props) => el("bdi", { dir: "auto", ...props }, String(text));
const paragraph = (kind, ...children) => el("p", { class: kind }, ...children);
const button = (props, ...children) => el("button", { type: "button", ...props }, ...children);
const folded = (title, props, ...children) => el("details", props, el("summary", {}, title), ...children);
const tableOf = (props, heads, rows = []) => el("table", props, el("thead", {}, el("tr", {}, heads)), el("tbody", {}, rows));
const head = (name, props) => el("th", { scope: "col", ...props }, name);

const LETTERS = "ABCDEFGH";
const number = (value) => value.toLocaleString("en");
const counted = (count, noun) => `${number(count)} ${noun}${count === 1 ? "" : "s"}`;

/** The key "/" leads to a search field, unless somebody writes. */
function searchKey(field) {
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.target.matches("input, select")) return;
    event.preventDefault();
    field.focus();
  });
}

async function post(address, value) {
  const body = JSON.stringify(value);
  const response = await fetch(address, { method: "POST", headers: { "Content-Type": "application/json" }, body });
  const words = await response.text();
  if (!response.ok) throw new Error(words.trim());
}

/** A share in per cent. Only none is 0.0 %, and only all is 100.0 %. */
function percent(part, whole) {
  const value = (100 * part) / whole;
  if (part > 0 && value < 0.05) return "< 0.1 %";
  if (part < whole && value >= 99.95) return "> 99.9 %";
  return `${value.toFixed(1)} %`;
}
