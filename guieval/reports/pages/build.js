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

const number = (value) => value.toLocaleString("en");
const counted = (count, noun) => `${number(count)} ${noun}${count === 1 ? "" : "s"}`;

/** A share in per cent. Only none is 0.0 %, and only all is 100.0 %. */
function percent(part, whole) {
  const value = (100 * part) / whole;
  if (part > 0 && value < 0.05) return "< 0.1 %";
  if (part < whole && value >= 99.95) return "> 99.9 %";
  return `${value.toFixed(1)} %`;
}
