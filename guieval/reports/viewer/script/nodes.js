// How a step may end, and the fixed places of the page.

// How a step ended; the order is that of the codes in reading.py.
const ENDS = [
  { mark: "✓", word: "right", verdict: "right" },
  { mark: "≈", word: "wrong, of the right type", verdict: "wrong" },
  { mark: "✕", word: "wrong type", verdict: "wrong" },
  { mark: "?", word: "no action in the response", verdict: "unparseable" },
  { mark: "U", word: "action outside the unified space", verdict: "unsupported" },
  { mark: "!", word: "no answer: a failure on the way", verdict: "failed" },
  { mark: "·", word: "not reached: the mode stopped before", verdict: "not reached" },
  { mark: "–", word: "never asked", verdict: "not run" },
  { mark: "\u00a0", word: "not in that run's plan", verdict: "not planned" },
];
const [RIGHT, MISS, WRONG_TYPE] = [0, 1, 2];
const NOT_REACHED = 6;
const DETAIL = {
  CLICK: "wrong place",
  LONG_PRESS: "wrong place",
  SCROLL: "wrong direction",
  TYPE: "wrong text",
  OPEN: "wrong app",
  PRESS: "wrong button",
  STOP: "wrong status",
  UNSUPPORTED: "wrong arguments",
};
const ROW_HEIGHT = 76;
const KEPT_CHUNKS = 12;

const canvas = $("canvas");
const list = $("list");
const rows = $("rows");
const strip = $("strip");
const panel = $("panel");
const legend = $("legend");

/** Replaces what a node holds; the focus goes to what takes the place of the part that had it. */
function refill(node, children) {
  const parts = () => [...node.querySelectorAll("button, summary, textarea")];
  const name = (part) => part.getAttribute("aria-label") ?? part.textContent;
  const place = parts().indexOf(document.activeElement);
  const had = place < 0 ? null : name(document.activeElement);
  node.replaceChildren(...children);
  if (had === null) return;
  (parts().find((part) => name(part) === had) ?? parts()[place])?.focus({ preventScroll: true });
  if (!node.contains(document.activeElement)) node.focus({ preventScroll: true }); // e.g. there is no next step
}

function badge(code, more = "") {
  const { mark, word } = ENDS[code];
  return el("span", { class: `badge end${code} ${more}`.trim(), role: "img", "aria-label": word, title: word }, mark);
}
