// Data files of the page's own folder: scripts that are loaded when they are needed.

/** A function that loads a script whose address fits a pattern; it rejects one that is missing. */
function loaderOf(own) {
  const checked = (url) => {
    if (!own.test(url)) throw new TypeError(`not a file of this report: ${url}`);
    return url;
  };
  const policy = window.trustedTypes?.createPolicy("guieval", { createScriptURL: checked }) ?? { createScriptURL: checked };
  return (url) =>
    new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.addEventListener("load", () => resolve(script.remove()));
      script.addEventListener("error", () => {
        script.remove();
        reject(new Error(`The file ${url} of this report is missing.`));
      });
      script.fetchPriority = "high"; // before images
      script.src = policy.createScriptURL(url);
      document.head.append(script);
    });
}
const fileName = (kind, number) => `data/${kind}-${String(number).padStart(5, "0")}.js`;
