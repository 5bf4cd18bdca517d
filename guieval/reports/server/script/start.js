// Which page this is.

const main = $("main");
const fillPage = document.body.dataset.kind === "runs" ? listPage : overviewPage;
fillPage(main).catch((error) => main.append(el("p", { role: "alert" }, error.message)));
