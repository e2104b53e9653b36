// The page in a browser: what a reader sees and does.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { launch, visit } from "./browser.mjs";
import { makeReport, TWO_MODELS, writePage } from "./fixture.mjs";

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

/** Opens the page of a report, and afterwards holds that nothing went wrong in it. */
function pageTest(name, report, steps, { fragment = "", ...options } = {}) {
  test(name, async () => {
    const address = writePage(report, name.replaceAll(/\W+/g, "-"));
    const { page, context, trouble } = await visit(browser, address + fragment, options);
    await steps(page, address);
    assert.deepEqual(trouble, []);
    await context.close();
  });
}

const cells = (page, column) =>
  page.$$eval(
    ".rows tbody tr[data-place]",
    (rows, column) => rows.map((row) => row.children[column].textContent),
    column,
  );
const status = (page) => page.textContent(".status");
const isOpen = (page) => page.$eval("dialog", (dialog) => dialog.open);
const title = (page) => page.textContent("#node-title");
const noSidewaysScroll = async (page) =>
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "the page scrolls sideways");

const one = makeReport();
const two = makeReport({ models: TWO_MODELS });
const nonrobust = (report, wanted = () => true) => {
  const { verdict, witness } = report.models[0].certificates;
  return verdict.findIndex((value, position) => value === 1 && witness[position].length > 0 && wanted(position));
};

pageTest("shows every section and makes no request", one, async (page) => {
  const headings = await page.$$eval("main h2", (all) => all.map((heading) => heading.textContent));
  assert.deepEqual(headings, [
    "At a glance",
    "How many flips predictions withstand",
    "By how much predictions hold",
    "Which nodes withstand more",
    "What is guaranteed",
    "Nodes",
  ]);
  assert.equal(await page.title(), one.title);
  assert.equal(await page.locator("main .chart svg").count(), 5);
});

const thresholded = makeReport({ size: 40, title: "thresholded" });
thresholded.graph.binarised = 1234;

pageTest("says that verdicts are about thresholded attributes", thresholded, async (page) => {
  const text = await page.locator(".guarantee").innerText();
  assert.match(text, /Nothing about the attributes as they were\. 1,234 values of them are neither 0 nor 1\./);
});

pageTest("headline numbers are those of the data", two, async (page) => {
  for (const [number, model] of two.models.entries()) {
    const robust = model.certificates.verdict.filter((verdict) => verdict === 0).length;
    const text = await page.locator(".card").nth(number).textContent();
    assert.ok(text.includes(`${((100 * robust) / 300).toFixed(1)}%`), text);
    assert.ok(text.includes("At most 5 flips, 2 at one node (1% of 200 attributes)."), text);
    const judged = two.nodes.part.flatMap((part, position) => (part === 0 && position < 300 ? [position] : []));
    const right = judged.filter(
      (position) => two.nodes.label[position] === model.certificates.predicted[position],
    ).length;
    assert.ok(text.includes(`${((100 * right) / judged.length).toFixed(1)}%`), `accuracy in ${text}`);
    const mean = model.radii.robust_up_to.reduce((sum, radius) => sum + radius, 0) / 300;
    assert.ok(text.includes(mean.toFixed(1)), `mean radius in ${text}`);
  }
});

pageTest("sorts by a column, both ways, and says so", one, async (page) => {
  const degrees = async () => (await cells(page, 3)).map(Number);
  const head = page.locator('th:has(button:text("degree"))');
  await head.locator("button").click();
  assert.equal(await head.getAttribute("aria-sort"), "ascending");
  assert.deepEqual(
    await degrees(),
    (await degrees()).toSorted((a, b) => a - b),
  );
  await head.locator("button").click();
  assert.equal(await head.getAttribute("aria-sort"), "descending");
  assert.equal((await degrees())[0], Math.max(...one.nodes.degree.slice(0, 300)));
});

pageTest("filters by verdict, class, prediction and part", two, async (page) => {
  const [first, second] = two.models.map(({ certificates }) => certificates);
  const choose = (label, option) => page.getByRole("combobox", { name: label }).selectOption(option);
  const expected = (matches) => Array.from({ length: 300 }, (_, position) => position).filter(matches).length;
  await choose("verdict A", "nonrobust");
  await choose("verdict B", "robust");
  const fooled = expected((position) => first.verdict[position] === 1 && second.verdict[position] === 0);
  assert.equal(await status(page), `${fooled} of 300 nodes`);
  await choose("prediction", "wrong");
  const wrong = (position) =>
    [first, second].some(({ predicted }) => predicted[position] !== two.nodes.label[position]);
  assert.equal(
    await status(page),
    `${expected((position) => first.verdict[position] === 1 && second.verdict[position] === 0 && wrong(position))} of 300 nodes`,
  );
  await choose("verdict A", "");
  await choose("verdict B", "");
  await choose("prediction", "");
  await choose("part", "labelled");
  assert.equal(await status(page), `${expected((position) => two.nodes.part[position] === 1)} of 300 nodes`);
  await choose("part", "");
  await choose("predicted class", "2");
  assert.equal(
    await status(page),
    `${expected((position) => first.predicted[position] === 2 || second.predicted[position] === 2)} of 300 nodes`,
  );
});

pageTest("searches names and numbers", one, async (page) => {
  const name = one.nodes.name[17];
  await page.getByLabel("search").fill(name.toUpperCase());
  const names = await cells(page, 1);
  assert.ok(names.includes(name), names.join());
  assert.ok(names.length < 10);
  await page.getByLabel("search").fill("no such node");
  assert.equal(await status(page), "0 of 300 nodes");
  assert.match(await page.textContent(".rows tbody"), /No node matches/);
});

pageTest("a click opens a node, Escape closes it, and focus returns to the table", one, async (page) => {
  await page.locator(".rows tbody tr[data-place]").nth(3).click();
  assert.equal(await title(page), one.nodes.name[3]);
  assert.match(page.url(), new RegExp(`#node-${one.nodes.id[3]}$`));
  await page.keyboard.press("Escape");
  assert.equal(await isOpen(page), false);
  assert.equal(await page.evaluate(() => document.activeElement.getAttribute("role")), "grid");
  await page.waitForURL((url) => !url.hash.startsWith("#node-"));
});

pageTest("the keyboard alone opens a node", one, async (page) => {
  await page.getByRole("button", { name: "Download as CSV" }).focus();
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.getAttribute("role")), "grid");
  for (const key of ["ArrowDown", "ArrowDown", "ArrowDown", "ArrowUp", "End", "Home", "PageDown", "ArrowDown"])
    await page.keyboard.press(key);
  const active = await page.getAttribute("[role=grid]", "aria-activedescendant");
  const place = Number(await page.getAttribute(`#${active}`, "data-place"));
  assert.ok(place > 3, `row ${place}`);
  await page.keyboard.press("Enter");
  assert.equal(await title(page), one.nodes.name[place]);
});

const fallen = nonrobust(one, (position) =>
  one.models[0].certificates.witness[position].some(([at]) => at !== position),
);
pageTest(
  "a witness is told in words",
  one,
  async (page) => {
    const { witness, witness_class } = one.models[0].certificates;
    const text = await page.locator(".witness").first().innerText();
    for (const [at, attribute, to] of witness[fallen]) {
      const where = at === fallen ? "this node" : `“${one.nodes.name[at]}”`;
      const words = `${to === 1 ? "add" : "remove"} “${one.attributes[attribute]}” ${to === 1 ? "to" : "from"} ${where}`;
      assert.ok(text.includes(words), `${words} in ${text}`);
    }
    assert.ok(
      text.includes(`the model says ${one.graph.classes[witness_class[fallen]]}; the margin over it is −`),
      text,
    );
    const flipped = new Set(witness[fallen].map(([at]) => at)).size;
    assert.equal(await page.locator(".neighbourhood .badge").count(), flipped);
  },
  { fragment: `#node-${one.nodes.id[fallen]}` },
);

const unlinked = makeReport({ models: [{ attack: "deletions" }], title: "deletions" });
/** A node of which the witness of the certificate has as many edges as this, none of them two steps away from it or further. */
const cutOff = unlinked.models[0].certificates.witness_edges.findIndex(
  (edges, position) => edges?.length === 2 && edges.every((ends) => ends.includes(position)),
);
const edgeName = ([a, b]) => `${unlinked.nodes.name[a]} – ${unlinked.nodes.name[b]}`;

pageTest(
  "deleted edges are told in words, drawn, and explained by the legend",
  unlinked,
  async (page) => {
    const edges = unlinked.models[0].certificates.witness_edges[cutOff];
    const text = await page.locator(".witness").first().innerText();
    for (const ends of edges) {
      const [other] = ends.filter((end) => end !== cutOff);
      assert.ok(text.includes(`unlink “${unlinked.nodes.name[other]}”`), text);
    }
    assert.equal(text.match(/^unlink “.*” \(node \d+, a neighbour\) from this node$/gm)?.length, edges.length, text);
    assert.match(text, /After these 2 deletions the model says/);
    assert.match(
      await page.locator(".outcome").innerText(),
      /nonrobust\s+2 deletions change the class\. Allowed: at most 5 edges/,
    );
    const drawn = page.locator(".neighbourhood > svg .deleted > g");
    assert.equal(await drawn.count(), edges.length);
    for (const [number, [a, b]] of edges.entries()) {
      const label = await drawn.nth(number).getAttribute("aria-label");
      for (const end of [a, b])
        assert.ok(label.includes(`${unlinked.nodes.name[end]} (node ${unlinked.nodes.id[end]})`), label);
      await drawn.nth(number).locator(".cross").hover();
      assert.equal(await page.textContent(".hint"), label);
    }
    assert.match(await page.locator(".legend.classes").innerText(), /edge that the witness deletes/);
    assert.equal(await page.locator(".legend svg.deleted").count(), 1);
    assert.equal(await page.locator(".badge").count(), 0, "nothing is flipped");
    const spot = page.locator(".spots > *").first();
    assert.match(await spot.getAttribute("aria-label"), /, 2 edges deleted$/);
  },
  { fragment: `#node-${unlinked.nodes.id[cutOff]}` },
);

pageTest(
  "an edge that is deleted is not drawn as one that is there",
  unlinked,
  async (page) => {
    const ends = (selector) =>
      page.$$eval(selector, (lines) =>
        lines.map((line) => ["x1", "y1", "x2", "y2"].map((name) => Number(line.getAttribute(name)))),
      );
    const [there, gone] = [
      await ends(".neighbourhood > svg .links line"),
      await ends(".neighbourhood > svg .deleted .gone"),
    ];
    assert.ok(there.length > 0 && gone.length > 0);
    const away = ([x, y], [x1, y1, x2, y2]) =>
      Math.abs((x2 - x1) * (y1 - y) - (x1 - x) * (y2 - y1)) / Math.hypot(x2 - x1, y2 - y1);
    const within = ([x, y], [x1, y1, x2, y2]) =>
      x >= Math.min(x1, x2) - 1 && x <= Math.max(x1, x2) + 1 && y >= Math.min(y1, y2) - 1 && y <= Math.max(y1, y2) + 1;
    for (const [x1, y1, x2, y2] of gone) {
      const points = [
        [x1, y1],
        [x2, y2],
      ];
      const covers = there.filter((line) => points.every((point) => away(point, line) < 0.5 && within(point, line)));
      assert.deepEqual(covers, [], "a line lies under it");
    }
  },
  { fragment: `#node-${unlinked.nodes.id[cutOff]}` },
);

pageTest("names in the drawing cover no deleted edge", unlinked, async (page) => {
  const { witness_edges } = unlinked.models[0].certificates;
  let names = 0;
  for (const [position, edges] of witness_edges.entries()) {
    if (names > 100) break;
    if (!(edges?.length > 2)) continue;
    await page.evaluate((hash) => (location.hash = hash), `#node-${unlinked.nodes.id[position]}`);
    await page.waitForFunction(
      (name) => document.querySelector("#node-title")?.textContent === name,
      unlinked.nodes.name[position],
    );
    const covered = await page.$eval(".neighbourhood > svg", (drawing) => {
      const names = [...drawing.querySelectorAll(".labels text")].map((text) => [text, text.getBBox()]);
      const points = [...drawing.querySelectorAll(".deleted .gone")].flatMap((line) =>
        Array.from({ length: 101 }, (_, percent) => line.getPointAtLength((percent / 100) * line.getTotalLength())),
      );
      const covers = ({ x, y, width, height }) =>
        points.some(
          (point) => point.x > x + 2 && point.x < x + width - 2 && point.y > y + 3 && point.y < y + height - 3,
        );
      return {
        names: names.length,
        covering: names.filter(([, box]) => covers(box)).map(([text]) => text.textContent),
      };
    });
    assert.deepEqual(covered.covering, [], `at node ${unlinked.nodes.id[position]}`);
    names += covered.names;
  }
  assert.ok(names > 100, `${names} names`);
});

pageTest("deleted edges are in the table and in CSV", unlinked, async (page) => {
  const { witness_edges: certified } = unlinked.models[0].certificates;
  const { witness_edges: searched } = unlinked.models[0].radii;
  const smaller = (position) => {
    const both = [certified[position], searched[position]].filter((edges) => edges);
    return both.length === 2 && both[1].length < both[0].length ? both[1] : both[0];
  };
  const shown = await cells(page, 9);
  assert.ok(shown.length > 10);
  shown.forEach((text, place) => assert.equal(text, (smaller(place) ?? []).map(edgeName).join("; ") || "–"));
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("button", { name: "Download as CSV" }).click(),
  ]);
  const lines = readFileSync(await download.path(), "utf8").split("\r\n");
  assert.ok(lines[0].endsWith(",purity,deleted edges"), lines[0]);
  const [[a, b]] = certified[cutOff];
  const named = (position) => `${unlinked.nodes.name[position]} (node ${unlinked.nodes.id[position]})`;
  assert.ok(lines[cutOff + 1].includes(`${named(a)} – ${named(b)}; `), lines[cutOff + 1]);
});

pageTest("a report about deletions speaks of deletions", unlinked, async (page) => {
  const text = await page.locator("body").innerText();
  for (const words of [
    "proven to hold when edges are deleted",
    "At most 5 edges deleted (2 at one node), each node keeps one.",
    "How many deletions predictions withstand",
    "under at most Q deletions, 2 at one node, each node keeps one. ",
    "no admissible set of 5 deletions or fewer, anywhere in the graph",
    "Radii: up to 40 deletions were tried, 2 at one node, each node keeps one, with the complete engine.",
    "Nothing about attributes, or about new edges.",
  ])
    assert.ok(text.includes(words), `${words}\n${text}`);
  assert.doesNotMatch(text, /\bflips?\b/i);
});

for (const [checked, not_checked, words] of [
  [false, 0, "Not checked again. nodeproof check does that, with a program that has none of the engines' code."],
  [true, 0, "Checked: a program with none of the engines' code has accepted every robust and nonrobust verdict."],
  [true, 1, "nonrobust verdict but one result, which has too many sets of deletions to go through. Of these it has"],
  [
    true,
    1811,
    "nonrobust verdict but 1,811 results, which have too many sets of deletions to go through. Of these it has",
  ],
])
  pageTest(`checked: ${checked}, all but ${not_checked}`, { ...unlinked, checked, not_checked }, async (page) => {
    const text = await page.locator(".checked").innerText();
    assert.ok(text.includes(words), text);
  });

const mixed = makeReport({
  models: [
    { name: "flips" },
    { name: "unlinked", attack: "deletions" },
    { name: "both", attack: "both", radii: false },
  ],
  title: "mixed",
});
const everywhere = mixed.models[2].certificates.verdict.findIndex(
  (verdict, position) =>
    verdict === 1 && [1, 2].every((number) => mixed.models[number].certificates.witness_edges[position]?.length > 0),
);
pageTest(
  "flips and deletions stand side by side",
  mixed,
  async (page) => {
    const views = await page.$$eval(".model-view", (all) => all.map((view) => view.textContent));
    assert.ok(!views[0].includes("unlink") && views[1].includes("unlink") && !views[1].includes("flip"), views[1]);
    const flips = mixed.models[2].certificates.witness[everywhere].length;
    assert.match(views[2], new RegExp(`${flips} flips? and 1 deletion change the class`));
    assert.match(views[2], /(add|remove) “.*unlink/);
    await page.keyboard.press("Escape");
    const text = await page.locator("body").innerText();
    for (const words of [
      "when node attributes are tampered with or edges are deleted",
      "How many flips or deletions predictions withstand",
      "no admissible set of flips, deletions or both within the budget",
      "Nothing about edges.",
      "Nothing about attributes, or about new edges.",
      "Nothing about new edges.",
    ])
      assert.ok(text.includes(words), `${words}\n${text}`);
    assert.equal(await page.textContent("#curves ~ .note"), "The report has no radii of both. ");
  },
  { fragment: `#node-${mixed.nodes.id[everywhere]}` },
);

const budgets = makeReport({
  models: [{ radii: false }, { attack: "deletions", budget: 3 }, { attack: "both", radii: false }],
  title: "budgets",
});
pageTest("curves about deletions are marked at budgets of deletions alone", budgets, async (page) => {
  const text = await page.locator("#curves ~ figure .chart").first().textContent();
  assert.deepEqual(text.match(/certified: Q = \d+/g), ["certified: Q = 3"]);
  const notes = await page.locator("#curves ~ .note").allTextContents();
  assert.match(notes[0], /To know how many flips .* nodeproof radius … --out radii\.jsonl/);
});

/** The same report, with an edge that lies between two and three steps from some node as its witness. */
function farAway() {
  const report = structuredClone(unlinked);
  const { neighbours } = report.nodes;
  for (let node = 0; node < 300; node++) {
    const steps = new Map([[node, 0]]);
    let last = [node];
    for (let step = 1; step <= 3; step++)
      last = last.flatMap((from) => neighbours[from].filter((to) => !steps.has(to) && steps.set(to, step)));
    const from = last.length > 0 && neighbours[last[0]].find((to) => steps.get(to) === 2);
    if (!from || report.models[0].certificates.verdict[node] !== 1) continue;
    report.models[0].certificates.witness_edges[node] = [[last[0], from]];
    report.models[0].radii.witness[node] = null;
    return { report, node, edge: [from, last[0]] };
  }
  throw new Error("there is no such node");
}

const far = farAway();
pageTest(
  "an edge beyond two steps is drawn with its further end outside",
  far.report,
  async (page) => {
    const drawn = page.locator(".neighbourhood > svg .deleted > g");
    assert.equal(await drawn.count(), 1);
    const { name } = far.report.nodes;
    const text = await page.locator(".witness").first().innerText();
    const [near, further] = far.edge;
    assert.ok(text.indexOf(`“${name[further]}”`) < text.indexOf(`“${name[near]}”`), text);
    assert.match(text, /three steps away\) from .*two steps away\)/s);
    const reach = await drawn.locator(".gone").evaluate((line) => {
      const at = (end) => Math.hypot(line.getAttribute(`x${end}`), line.getAttribute(`y${end}`));
      return [at(1), at(2)].sort((a, b) => a - b);
    });
    assert.ok(reach[1] > reach[0] + 30, `from ${reach[0]} to ${reach[1]}`);
  },
  { fragment: `#node-${far.report.nodes.id[far.node]}` },
);

const hub = structuredClone(unlinked);
for (const [a, b] of hub.models[0].certificates.witness_edges[cutOff]) {
  hub.nodes.neighbours[a] = hub.nodes.neighbours[a].filter((other) => other !== b);
  hub.nodes.neighbours[b] = hub.nodes.neighbours[b].filter((other) => other !== a);
}
pageTest(
  "a deleted edge is drawn where the report lacks it among very many",
  hub,
  async (page) => {
    assert.equal(await page.locator(".neighbourhood > svg .deleted > g").count(), 2);
    const text = await page.locator(".witness").first().innerText();
    assert.equal(text.match(/, a neighbour/g).length, 2, text);
  },
  { fragment: `#node-${hub.nodes.id[cutOff]}` },
);

const together = makeReport({ models: [{ collectives: [1, 4, 20] }], title: "together" });
const answers = together.models[0].collectives.answers;
const section = (page) => page.locator("section.together");
const unfold = (page, global) =>
  section(page)
    .locator("summary", { hasText: `Q = ${global}:` })
    .last()
    .click();

pageTest("says how many predictions one attacker changes", together, async (page) => {
  const text = await section(page).innerText();
  for (const words of [
    "Whoever may flip 20 attributes anywhere, 2 at one node (1% of 200 attributes), changes at most 50 of 300 predictions,",
    "and an attack changes 40. Single certificates added up would say 230.",
  ])
    assert.ok(text.includes(words), `${words}\n${text}`);
  const rows = await section(page)
    .locator(".answers tbody tr")
    .evaluateAll((all) => all.map((row) => [...row.children].map((cell) => cell.textContent)));
  assert.deepEqual(rows, [
    ["1", "2 (0.7%)", "2", "exact", "4", "11", "0.1 s"],
    ["4", "10 (3.3%)", "8", "2", "18", "46", "0.4 s"],
    ["20", "50 (16.7%)", "40", "10", "90", "230", "2.0 s"],
  ]);
  assert.match(
    await page.locator(".card").innerText(),
    /≤ 16\.7%\s+at most 50 of 300 predictions change under 20 flips in all/,
  );
  assert.ok((await page.locator("nav a").allTextContents()).includes("Together"));
  const meaning = await page.locator(".guarantee").innerText();
  assert.match(meaning, /All predictions together: up to 20 flips, 2 at one node .* 300 predictions count\./);
  assert.match(meaning, /change at most\s+Proven: whichever flips within the budget are made/);
  assert.match(meaning, /How many predictions one attacker changes in all is another number\./);
});

pageTest("bounds and attacks are checked, too", { ...together, checked: true, not_checked: 0 }, async (page) => {
  const words =
    "has accepted every robust and nonrobust verdict and every bound and attack on all predictions together.";
  assert.ok((await page.locator(".checked").innerText()).endsWith(words));
});

pageTest("the charts of all predictions are told to those who do not see them", together, async (page) => {
  const charts = section(page).getByRole("img");
  assert.match(
    await charts.first().getAttribute("aria-label"),
    /: with 1 flip at most 2 of 300 \(0\.7%\), an attack 2; with 4 flips .*; with 20 flips at most 50 of 300 \(16\.7%\), an attack 40\.$/,
  );
  assert.match(await charts.nth(1).getAttribute("aria-label"), /with 20 flips 230 added up, 50 together\.$/);
  assert.equal(await section(page).locator(".chart svg").count(), 2);
  // A mark for each budget on each of two lines.
  for (const chart of [0, 1])
    assert.equal(await charts.nth(chart).locator("g[aria-label=dot] path, g[aria-label=dot] circle").count(), 6);
});

pageTest("hovering the chart of all predictions tells its numbers", together, async (page) => {
  const chart = section(page).locator(".chart").first();
  await chart.scrollIntoViewIfNeeded();
  const box = await chart.boundingBox();
  await page.mouse.move(box.x + box.width - 30, box.y + box.height / 2);
  await page.waitForFunction(() =>
    /Q = 20.*at most 50 \(16\.7%\).*attack 40/.test(
      document.querySelector("section.together [aria-label=tip]")?.textContent ?? "",
    ),
  );
});

pageTest("an attack unfolds with its flips and what they change, by keyboard alone", together, async (page) => {
  await section(page).locator("summary", { hasText: "Q = 4: 4 flips, and 8 predictions change" }).focus();
  await page.keyboard.press("Enter");
  const lists = section(page).locator("details[open] ul");
  const [made, changed] = [await lists.first().innerText(), await lists.nth(1).innerText()];
  const { flips } = answers[1];
  for (const [position, attribute, to] of flips) {
    const { name, id } = together.nodes;
    const words = `${name[position]} (node ${id[position]}): ${to === 1 ? "add" : "remove"} “${together.attributes[attribute]}”`;
    assert.ok(made.includes(words), `${words} in ${made}`);
  }
  assert.deepEqual(
    changed.split("\n"),
    answers[1].changed.map((position) => `${together.nodes.name[position]} (node ${together.nodes.id[position]})`),
  );
  await lists.nth(1).getByRole("link").nth(3).click();
  const position = answers[1].changed[3];
  assert.equal(await title(page), together.nodes.name[position]);
  const budgets = answers.filter(({ changed }) => changed.includes(position)).map(({ global }) => global);
  const sentence = page.locator("dialog .sentence", { hasText: "Together." });
  assert.equal(
    await sentence.innerText(),
    `Together. It changes under the ${budgets.length > 1 ? "attacks" : "attack"} on all predictions together with Q = ${budgets.join(" and ")}.`,
  );
  await sentence.getByRole("link").click();
  assert.equal(await isOpen(page), false);
  await page.waitForFunction(() => Math.abs(document.querySelector("#together").getBoundingClientRect().top) < 60);
});

pageTest("answers and attacks download as CSV", together, async (page) => {
  const saved = async (name) => {
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      section(page).getByRole("button", { name }).click(),
    ]);
    return [
      download.suggestedFilename(),
      readFileSync(await download.path(), "utf8")
        .trimEnd()
        .split("\r\n"),
    ];
  };
  assert.deepEqual(await saved("Download these numbers as CSV"), [
    "together.csv",
    [
      "\ufeffglobal_budget,predictions,at_most,at_least,by_radii,alone,seconds",
      "1,300,2,2,4,11,0.1",
      "4,300,10,8,18,46,0.4",
      "20,300,50,40,90,230,2",
    ],
  ]);
  await unfold(page, 1);
  const [name, lines] = await saved("Download this attack as CSV");
  const [[position, attribute, to]] = answers[0].flips;
  const about = (position) => `${together.nodes.id[position]},${together.nodes.name[position]}`;
  assert.equal(name, "attack-1.csv");
  assert.deepEqual(lines, [
    "\ufeffwhat,node,name,attribute,attribute_name,to",
    `flip,${about(position)},${attribute},${together.attributes[attribute]},${to}`,
    ...answers[0].changed.map((position) => `changes,${about(position)},,,`),
  ]);
});

pageTest("prints the numbers of all predictions, and the attacks that are unfolded", together, async (page) => {
  await unfold(page, 4);
  await section(page).locator("details[open] ul").first().waitFor();
  await page.emulateMedia({ media: "print" });
  assert.ok(await section(page).locator(".answers table").isVisible());
  assert.deepEqual(
    await section(page)
      .locator("details")
      .evaluateAll((all) => all.map((one) => one.checkVisibility())),
    [false, true, false],
  );
  assert.equal(await section(page).locator("button:visible").count(), 0);
  const list = section(page).locator("details[open] ul").nth(1);
  assert.ok(await list.evaluate((list) => list.scrollHeight <= list.clientHeight), "the list is cut off");
});

/** Nothing but collective certificates: no node has results of its own. */
const nothingElse = structuredClone(together);
nothingElse.nodes.subjects = 0;
Object.assign(nothingElse.models[0], { certificates: null, radii: null, purity: [] });
nothingElse.models[0].collectives.answers[1].at_most = 8;
nothingElse.models[0].collectives.answers.pop();
pageTest(
  "collective certificates alone are a report",
  nothingElse,
  async (page) => {
    const headings = await page.$$eval("main h2", (all) => all.map((heading) => heading.textContent));
    assert.deepEqual(headings, ["At a glance", "All predictions together", "What is guaranteed"]);
    const text = await page.locator("body").innerText();
    for (const words of [
      "How many predictions of a graph convolutional network one attacker can change when node attributes are tampered with",
      "changes at most 8 of 300 predictions, and an attack changes as many.",
      "No certificates of single nodes in this report.",
    ])
      assert.ok(text.includes(words), `${words}\n${text}`);
    assert.doesNotMatch(text, /undecided|radius/);
    await unfold(page, 4);
    await section(page).locator("details[open] ul").first().waitFor();
    assert.equal(await section(page).locator("details[open] a").count(), 0, "no node has a view of its own");
  },
  { ready: "#together" },
);

pageTest(
  "a single budget is drawn as bars",
  makeReport({ models: [{ collectives: [4] }], title: "single" }),
  async (page) => {
    const chart = section(page).getByRole("img");
    assert.equal(await chart.count(), 1);
    assert.equal(
      await chart.getAttribute("aria-label"),
      "Share of predictions that one attacker changes: with 4 flips at most 10 of 300 (3.3%), an attack 8; single certificates added up say 46.",
    );
    const text = await chart.locator("text").allTextContents();
    for (const words of ["attack changes", "8 (2.7%)", "change at most", "10 (3.3%)", "added up", "46 (15.3%)"])
      assert.ok(text.includes(words), `${words} in ${text.join("; ")}`);
    const widths = await chart
      .locator("[aria-label=bar] rect")
      .evaluateAll((all) => all.map((bar) => Number(bar.getAttribute("width"))));
    assert.ok(Math.abs(widths[0] / widths[2] - 8 / 46) < 0.01 && Math.abs(widths[1] / widths[2] - 10 / 46) < 0.01);
    await noSidewaysScroll(page);
  },
  { viewport: { width: 360, height: 740 } },
);

const leftOut = structuredClone(together);
for (const answer of leftOut.models[0].collectives.answers) Object.assign(answer, { flips: null, changed: null });
leftOut.models[0].collectives.answers[0].at_least = 0;
pageTest("says where attacks were left out", leftOut, async (page) => {
  assert.equal(await section(page).locator("details").count(), 0);
  assert.match(await section(page).innerText(), /They were left out to keep the page small/);
});

pageTest(
  "all predictions together fit a phone, also where there is little to show",
  makeReport({
    title: "together small",
    models: [
      { collectives: [1, 2, 3, 50, 60, 61, 62, 63, 64, 65, 66, 67, 68, 69, 70] },
      { name: "two", collectives: [3] },
      { name: "three", radii: false },
    ],
  }),
  async (page) => {
    await unfold(page, 70);
    await unfold(page, 3);
    await noSidewaysScroll(page);
    const letters = await section(page).locator(".answers td .letter").allTextContents();
    assert.equal(letters.join(""), `${"A".repeat(15)}B`);
    assert.match(
      await section(page).getByRole("img").first().getAttribute("aria-label"),
      /with 70 flips .*; the table below has the other budgets\.$/,
    );
    const ticks = await section(page).locator("[aria-label='x-axis tick label']").first().locator("text").all();
    const boxes = await Promise.all(ticks.map((tick) => tick.boundingBox()));
    boxes.slice(1).forEach((box, place) => assert.ok(box.x > boxes[place].x + boxes[place].width, "ticks overlap"));
  },
  { viewport: { width: 360, height: 740 } },
);

pageTest(
  "next and previous follow the order of the table",
  one,
  async (page) => {
    await page.keyboard.press("Escape");
    await page.locator('button:text("degree")').click();
    const [first, second] = await cells(page, 1);
    await page.locator(".rows tbody tr[data-place]").first().click();
    assert.equal(await title(page), first);
    const next = page.getByRole("button", { name: "Next" });
    await next.click();
    assert.equal(await title(page), second);
    assert.equal(await page.textContent(".place"), "2 of 300");
    assert.equal(await next.evaluate((button) => button === document.activeElement), true);
    const previous = page.getByRole("button", { name: "Previous" });
    await previous.click();
    assert.equal(await previous.getAttribute("aria-disabled"), "true");
    await previous.click({ force: true });
    assert.equal(await title(page), first);
    await page.goBack();
    assert.equal(await isOpen(page), false);
  },
  { fragment: `#node-${one.nodes.id[9]}` },
);

pageTest(
  "a neighbour in the drawing leads to its own view, and the back button returns",
  one,
  async (page) => {
    const link = page.locator(".neighbourhood .spots a").first();
    const target = await link.getAttribute("href");
    await link.click();
    assert.ok(page.url().endsWith(target));
    assert.notEqual(await title(page), one.nodes.name[0]);
    await page.goBack();
    assert.equal(await title(page), one.nodes.name[0]);
  },
  { fragment: `#node-${one.nodes.id[0]}` },
);

pageTest("two models stand side by side in the node view", two, async (page) => {
  await page.locator(".rows tbody tr[data-place]").first().click();
  const views = await page.$$eval(".model-view", (all) => all.map((view) => view.textContent));
  assert.equal(views.length, 2);
  assert.ok(views[1].includes(two.models[1].name));
});

pageTest(
  "an address that names no node shows the report",
  one,
  async (page) => assert.equal(await isOpen(page), false),
  { fragment: "#node-99999" },
);

pageTest(
  "the theme follows the system, can be switched, and is remembered",
  one,
  async (page) => {
    const theme = () => page.getAttribute("html", "data-theme");
    const background = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
    assert.equal(await theme(), "dark");
    const dark = await background();
    await page.getByRole("button", { name: "Light colours" }).click();
    assert.equal(await theme(), "light");
    assert.notEqual(await background(), dark);
    await page.reload();
    assert.equal(await theme(), "light");
  },
  { colorScheme: "dark" },
);

for (const [name, report] of [
  ["one model", one],
  ["two models", two],
])
  pageTest(
    `fits a phone: ${name}`,
    report,
    async (page) => {
      await noSidewaysScroll(page);
      await page.locator(".rows tbody tr[data-place]").first().click();
      await noSidewaysScroll(page);
      assert.ok(
        await page.$eval(".content", (content) => content.scrollWidth <= content.clientWidth),
        "the node view scrolls sideways",
      );
    },
    { viewport: { width: 360, height: 740 } },
  );

pageTest(
  "prints light, without controls, with the first rows and a note",
  one,
  async (page) => {
    await page.emulateMedia({ media: "print" });
    await page.waitForFunction(() => document.querySelectorAll(".rows tbody tr").length === 50);
    assert.equal(await page.locator(".filters").isVisible(), false);
    assert.match(await page.locator(".print-only").innerText(), /first 50 nodes in this order; 250 more/);
    assert.equal(
      await page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor),
      "rgb(255, 255, 255)",
    );
    assert.ok(await page.locator("#guarantee").isVisible());
    assert.ok((await page.pdf({ format: "A4" })).length > 20_000);
    await page.emulateMedia({ media: "screen" });
    await page.waitForFunction(() => document.querySelectorAll(".rows tbody tr").length < 50);
  },
  { colorScheme: "dark" },
);

pageTest(
  "the table downloads as CSV that no spreadsheet computes",
  makeReport({ size: 40, title: "csv" }),
  async (page) => {
    await page.getByRole("combobox", { name: "verdict" }).selectOption("nonrobust");
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "Download as CSV" }).click(),
    ]);
    const lines = readFileSync(await download.path(), "utf8")
      .trimEnd()
      .split("\r\n");
    assert.equal(lines[0], "\ufeffnode,name,label,degree,predicted,verdict,margin,radius,purity");
    assert.equal(`${lines.length - 1} of 40 nodes`, await status(page));
    assert.ok(lines.slice(1).every((line) => line.includes(",nonrobust,")));
  },
);

const formula = makeReport({ size: 3 });
formula.nodes.name.splice(0, 3, '=HYPERLINK("http://example.org")', "  +1", "plain, with comma");
pageTest("formulas in names stay text in CSV", formula, async (page) => {
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("button", { name: "Download as CSV" }).click(),
  ]);
  const text = readFileSync(await download.path(), "utf8");
  assert.ok(text.includes(`"'=HYPERLINK(""http://example.org"")"`), text);
  assert.ok(text.includes(`,'  +1,`), text);
  assert.ok(text.includes(`"plain, with comma"`), text);
});

pageTest("hovering a curve tells its numbers", one, async (page) => {
  const chart = page.locator("#curves ~ figure .chart").first();
  await chart.scrollIntoViewIfNeeded();
  const box = await chart.boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  await page.waitForFunction(() =>
    /Q = \d+/.test(document.querySelector("#curves ~ figure [aria-label=tip]")?.textContent ?? ""),
  );
  await page.locator("#curves ~ figure summary").click();
  const { curve } = one.models[0].radii;
  const row = await page.locator("#curves ~ figure tbody tr").nth(3).innerText();
  assert.ok(row.includes(`${((100 * curve.robust[3]) / 300).toFixed(1)}%`), row);
  assert.equal(await page.locator("#curves ~ figure tbody tr").count(), curve.robust.length);
  assert.match(
    await page.locator("#curves ~ figure figcaption").innerText(),
    /Beyond Q = \d+ each curve changes by less/,
  );
});
