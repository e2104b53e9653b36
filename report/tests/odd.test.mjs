// Reports that are odd or hostile: missing results, unknown numbers, names that attack the page, very many nodes.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { launch, visit } from "./browser.mjs";
import { makeReport, TWO_MODELS, writePage } from "./fixture.mjs";

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

async function open(report, name, fragment = "", options = {}) {
  const visited = await visit(browser, writePage(report, name) + fragment, options);
  return { ...visited, text: (selector) => visited.page.locator(selector).first().innerText() };
}

async function quiet({ trouble, context }) {
  assert.deepEqual(trouble, []);
  await context.close();
}

const HOSTILE = [
  "<script>window.attacked = 1</script>",
  '<img src="https://example.org/x.png" onerror="window.attacked = 1">',
  "</script><script>window.attacked = 1</script>",
  '"><svg onload="alert(1)">',
  "<!--<script>",
  "__proto__",
  "constructor",
  "\u202etfel ot thgir\u202d\u2066",
  "👩‍👩‍👧‍👦🏳️‍🌈",
  "\u200b\u200d\u2060",
  "__NODEPROOF_DATA__ {{script}} $& $1",
  "x".repeat(10_000),
  "' onmouseover='alert(1)",
];

/** The same report with attacks for names. */
function hostileReport(models) {
  const report = makeReport({ size: 60, drawnOnly: 10, models, title: HOSTILE.join(" ") });
  const attack = (number) => HOSTILE[number % HOSTILE.length];
  report.nodeproof = HOSTILE[0];
  report.graph.name = HOSTILE[11];
  report.graph.classes = report.graph.classes.map((_, number) => attack(number));
  report.nodes.name = report.nodes.name.map((_, number) => attack(number).slice(0, 300));
  report.attributes = Object.fromEntries(Object.keys(report.attributes).map((key) => [key, attack(Number(key))]));
  Object.defineProperty(report.attributes, "__proto__", { value: "polluted", enumerable: true });
  report.models.forEach((model, number) => {
    model.name = attack(number + 2);
    model.propagation = attack(11);
  });
  return report;
}

for (const viewport of [
  { width: 1280, height: 900 },
  { width: 360, height: 740 },
])
  test(`hostile names are text, ${viewport.width} px wide`, async () => {
    const report = hostileReport([{ collectives: [1, 20] }, { attack: "deletions" }]);
    const visited = await open(report, `hostile-${viewport.width}`, "", { viewport });
    const { page } = visited;
    const sideways = () => page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
    assert.equal(await sideways(), false);
    assert.ok((await page.textContent("h1")).includes(HOSTILE[1]));
    await page.locator(".attack summary").last().click();
    await page.locator(".attack[open] ul").first().waitFor();
    assert.equal(await page.locator(".attack[open] li").count(), 60);
    assert.equal(await sideways(), false);
    assert.equal(await page.locator("main img, header img, dialog img, main script, header script").count(), 0);
    await page.locator(".rows tbody tr[data-place]").first().click();
    for (let step = 0; step < HOSTILE.length + 1; step++) {
      const expected = report.nodes.name[step].replaceAll(/[\u202a-\u202e\u2066-\u2069]/g, "");
      const shown = await page.textContent("#node-title");
      assert.equal(shown, /[\p{L}\p{N}\p{P}\p{S}]/u.test(expected) ? expected : `node ${report.nodes.id[step]}`);
      assert.ok(
        await page.$eval(".content", (content) => content.scrollWidth <= content.clientWidth),
        `node view ${step} scrolls sideways`,
      );
      await page.getByRole("button", { name: "Next" }).click();
    }
    await page.keyboard.press("Escape");
    await page.getByLabel("search").fill("<script>");
    assert.ok((await page.locator(".rows tbody tr[data-place]").count()) > 0);
    assert.equal(await page.evaluate(() => window.attacked ?? {}.polluted), undefined);
    await quiet(visited);
  });

test("a model without radii says how to get them, and shows shares instead", async () => {
  const visited = await open(makeReport({ models: [{ radii: false }] }), "no-radii");
  assert.ok((await visited.text(".note")).includes("nodeproof radius … --out radii.jsonl"));
  assert.ok((await visited.page.textContent("#groups ~ .pair")).includes("share robust"));
  assert.equal(await visited.page.locator('th button:text-is("radius")').count(), 0);
  await quiet(visited);
});

test("of two models one may lack radii, the other certificates", async () => {
  const report = makeReport({ models: [{ radii: false }, { name: "second", certificates: false }] });
  const visited = await open(report, "mixed", `#node-${report.nodes.id[2]}`);
  assert.ok((await visited.page.textContent(".note")).includes("standard"));
  assert.ok(
    (await visited.page.locator(".card").nth(1).innerText()).includes("No certificates in this report, only radii"),
  );
  assert.ok((await visited.page.locator(".model-view").nth(1).innerText()).includes("No certificate of this node"));
  await quiet(visited);
});

test("certified budgets that differ are both marked", async () => {
  const visited = await open(makeReport({ models: [{}, { budget: 9 }] }), "budgets");
  const chart = await visited.page.textContent("#curves ~ figure .chart");
  assert.ok(chart.includes("certified: Q = 5") && chart.includes("certified: Q = 9"), chart);
  await quiet(visited);
});

test("radii say where no number of deletions is enough", async () => {
  const report = makeReport({ size: 30, models: [{ attack: "deletions" }] });
  const { radii } = report.models[0];
  Object.assign(radii.robust_up_to, [40, 40, 7]);
  Object.assign(radii.nonrobust_from, [null, null, 8]);
  radii.withstands_any = radii.position.map((position) => position === 0);
  const visited = await open(report, "any");
  const { page } = visited;
  for (const [row, [radius, story]] of [
    ["any", "Withstands any deletions: all that the prediction may notice were tried."],
    ["≥ 40", "Withstands any 40 deletions, the most that was tried."],
    ["7", "Withstands any 7 deletions; 8 can change the class."],
  ].entries()) {
    const cells = await page.$eval(`.rows tr[data-place="${row}"]`, (tr) =>
      [...tr.cells].map((cell) => cell.textContent),
    );
    assert.equal(cells[7], radius);
    await page.evaluate((id) => (location.hash = `#node-${id}`), report.nodes.id[row]);
    await page.waitForFunction(
      (name) => document.querySelector("#node-title")?.textContent === name,
      report.nodes.name[row],
    );
    const text = await page.innerText(".model-view");
    assert.ok(text.includes(story), text);
  }
  assert.match(await page.innerText("body"), /“any” where every edge that may matter to the node was tried/);
  await quiet(visited);
});

test("undecided nodes, ties, overflows and positive margins read sensibly", async () => {
  const report = makeReport({ size: 30 });
  const { certificates, radii } = report.models[0];
  const set = (position, verdict, margins, witness = null, margin = null, bounds = null) => {
    certificates.verdict[position] = verdict;
    certificates.margins[position] = margins;
    certificates.witness[position] = witness;
    certificates.witness_class[position] = witness && 1;
    certificates.witness_margin[position] = margin;
    certificates.bounds[position] = bounds;
    certificates.class[position] = certificates.predicted[position] = 0;
    radii.witness[position] = null;
  };
  const others = (value) => [null, value, 1, 1, 1, 1, 1];
  set(0, 2, others(-0.25), null, null, [-0.25, 0.5]);
  set(1, 1, others(0), [], 0);
  set(2, 2, others("unknown"), null, null, ["unknown", null]);
  set(3, 0, others("positive"));
  set(4, 1, others(-0.5), [], -0.5);
  certificates.target = "label";
  Object.assign(radii.robust_up_to, [7, null, null, 40, 3]);
  Object.assign(radii.nonrobust_from, [8, 0, null, null, 6]);
  const expected = [
    ["undecided", "−0.250", "7", /smallest margin lies between −0\.250 and 0\.500/],
    ["nonrobust", "0", "none", /already level with/],
    ["undecided", "?", "?", /Numbers overflowed, and nothing is known/],
    ["robust", "> 0", "≥ 40", /by how much is not known.*Withstands any 40 flips, the most that was tried/s],
    ["nonrobust", "−0.500", "3–5", /already prefers another class/],
  ];
  const visited = await open(report, "odd");
  const { page } = visited;
  for (const [row, [verdict, margin, radius, story]] of expected.entries()) {
    const cells = await page.$eval(`.rows tr[data-place="${row}"]`, (tr) =>
      [...tr.cells].map((cell) => cell.textContent),
    );
    assert.ok(cells[5].endsWith(verdict), cells.join(" | "));
    assert.equal(cells[6], margin);
    assert.equal(cells[7], radius);
    await page.evaluate((id) => (location.hash = `#node-${id}`), report.nodes.id[row]);
    await page.waitForFunction(
      (name) => document.querySelector("#node-title")?.textContent === name,
      report.nodes.name[row],
    );
    assert.match(await page.innerText(".model-view"), story);
  }
  await page.keyboard.press("Escape");
  await page.getByRole("combobox", { name: "predicted class" }).selectOption("0");
  await page.locator('th button:text-is("margin")').click();
  const shown = await page.$$eval(".rows tr[data-place]", (rows) => rows.map((row) => row.cells[6].textContent));
  assert.deepEqual(
    shown.filter((margin) => expected.some(([, wanted]) => wanted === margin)),
    ["−0.500", "−0.250", "0", "> 0", "?"],
  );
  assert.match(await page.innerText("#margins ~ figure"), /1 node without a known margin/);
  await quiet(visited);
});

test("labels and the split may be missing", async () => {
  const report = makeReport();
  report.nodes.label = report.nodes.label.map(() => null);
  report.nodes.part = null;
  const visited = await open(report, "no-labels", `#node-${report.nodes.id[0]}`);
  assert.ok((await visited.page.locator(".card").innerText()).includes("no labels to compare with"));
  assert.match(await visited.text(".facts"), /no label/);
  assert.equal(await visited.page.locator(".filters label").count(), 3);
  await quiet(visited);
});

test("a report of one node, alone in its graph", async () => {
  const report = makeReport({ size: 1, drawnOnly: 0, models: TWO_MODELS });
  const visited = await open(report, "single", `#node-${report.nodes.id[0]}`);
  assert.equal(await visited.page.textContent(".place"), "1 of 1");
  assert.equal(
    await visited.page.locator(".spots").first().locator("circle.class-0, circle[class^=class-]").count(),
    1,
  );
  await quiet(visited);
});

test("a node with thousands of neighbours is drawn in part, and says so", async () => {
  const report = makeReport({ size: 300 });
  report.nodes.neighbours[0] = Array.from({ length: 64 }, (_, index) => index + 1);
  report.nodes.degree[0] = 5000;
  const visited = await open(report, "hub", `#node-${report.nodes.id[0]}`);
  assert.match(await visited.text(".neighbourhood .quiet"), /Drawn: \d+ of 5,000 neighbours and \d+ of at least/);
  assert.ok((await visited.page.locator(".spots > *").count()) <= 70);
  await quiet(visited);
});

test("data that are not a report give a message, not a blank page", async () => {
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(writePage({ format: "something else" }, "broken"));
  assert.match(await page.innerText("[role=alert]"), /cannot be shown/);
  await context.close();
});

test("20,000 nodes stay swift", async (t) => {
  const report = makeReport({ size: 20_000, models: TWO_MODELS });
  const started = performance.now();
  const visited = await open(report, "large");
  const { page } = visited;
  t.diagnostic(`opened in ${Math.round(performance.now() - started)} ms`);
  const timed = async (name, action) => t.diagnostic(`${name}: ${(await page.evaluate(action)).toFixed(0)} ms`);
  const click = (text) =>
    `(() => { const button = [...document.querySelectorAll("th button")].find((button) => button.textContent === "${text}"); const start = performance.now(); button.click(); document.body.offsetHeight; return performance.now() - start; })()`;
  for (const column of ["name", "name", "degree", "margin", "verdict", "predicted"])
    await timed(`sort by ${column}`, click(column));
  const type = (text) =>
    `(() => { const box = document.querySelector("input[type=search]"); const start = performance.now(); box.value = "${text}"; box.dispatchEvent(new Event("input")); document.body.offsetHeight; return performance.now() - start; })()`;
  for (const text of ["ba", "bari", ""]) await timed(`search “${text}”`, type(text));
  await page.locator(".rows").evaluate((rows) => (rows.scrollTop = 300_000));
  await page.waitForSelector('.rows tr[data-place="8340"]');
  assert.ok((await page.locator(".rows tbody tr").count()) < 60, "rows out of sight are in the page");
  assert.ok((await page.locator("svg *").count()) < 3000, "charts draw every node");
  await page.locator("[role=grid]").focus();
  await page.keyboard.press("End");
  await page.waitForSelector('.rows tr.active[data-place="19999"]');
  await quiet(visited);
});
