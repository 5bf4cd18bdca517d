// What is shown now, and how the index is asked.

let index, episodeOf, lowered, names;
let texts = []; // by file, once searched
const state = { row: -1, protocol: 0, sample: [], zoom: 1 };
const MARKS = { reference: true, prediction: true, alternatives: true, sampled: true, targets: false, elements: false, accepted: true, part: true, distractor: true, clean: false };
const drawn = { ...MARKS };
const folds = new Map(); // by the name of a part of the panel: whether somebody opened or closed it
const FOLDS = /^(about|accepted|protocols|(response|prompt)[1-7]?)$/;
const filters = { query: "" }; // what is chosen, by the names of the filters
let listed = []; // rows that match
let listedEpisodes = []; // {episode, first, count}
let matches = new Uint8Array(0);
let shown = null; // {row, values, image, why}

const end = (row, run = 0, protocol = state.protocol) => index.ends[run][protocol].charCodeAt(row) - 48;
const type = (code) => (code < 0 ? null : index.types[code]);
const lastRow = (episode) => (index.starts[episode + 1] ?? index.steps.length) - 1;
const comparing = () => index.runs.length > 1;

function kindOf(row) {
  const code = end(row);
  if (code === MISS) return DETAIL[type(index.predicted[0][row])] ?? "wrong detail";
  if (code === WRONG_TYPE) return "wrong type";
  return code === RIGHT || code === NOT_REACHED ? "" : ENDS[code].word;
}

/** How a run's prediction is drawn and coloured. */
const sideOf = (run) => ["first", "second"][run] ?? "further";
const letterOf = (run) => (comparing() ? LETTERS[run] : "P");
