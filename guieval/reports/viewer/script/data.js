// The data files: scripts that call guieval.index, guieval.chunk and guieval.text, loaded when they are needed.

const waiting = new Map();
const loaded = { steps: new Map(), text: new Map() };
const loadScript = loaderOf(/^data\/((steps|text)-\d{5}|index)\.js$/);

function load(kind, number) {
  const kept = loaded[kind].get(number);
  if (kept) {
    loaded[kind].delete(number);
    loaded[kind].set(number, kept);
    return kept;
  }
  const promise = new Promise((resolve, reject) => {
    waiting.set(`${kind}${number}`, resolve);
    loadScript(fileName(kind, number)).catch((error) => {
      loaded[kind].delete(number);
      reject(error);
    });
  });
  loaded[kind].set(number, promise);
  if (kind === "steps" && loaded.steps.size > KEPT_CHUNKS) loaded.steps.delete(loaded.steps.keys().next().value);
  return promise;
}
const arrive = (name, value) => {
  waiting.get(name)?.(value);
  waiting.delete(name);
};
document.querySelector('script[src="data/index.js"]').addEventListener("error", () => {
  $("count").textContent = "The steps cannot be shown: the file data/index.js is missing.";
});
window.guieval = Object.freeze({
  index: (_, value) => (index ? renew(value) : start(value)),
  chunk: (number, value) => arrive(`steps${number}`, value),
  text: (number, value) => arrive(`text${number}`, value.map((each) => each.toLowerCase())),
});
