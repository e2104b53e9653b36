// Pages that the program itself wrote: NODEPROOF names it.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { launch, visit } from "./browser.mjs";

const PROGRAM = process.env.NODEPROOF;
const MODEL = new URL("../../examples/papers/model.safetensors", import.meta.url).pathname;
const PAPERS = new URL("../../examples/papers/graph.npz", import.meta.url).pathname;
const HOSTILE = new URL("hostile.py", import.meta.url).pathname;

let browser;
let folder;
before(async () => {
  browser = await launch();
  folder = mkdtempSync(join(tmpdir(), "nodeproof-"));
});
after(async () => {
  await browser.close();
  rmSync(folder, { recursive: true });
});

/** Runs the program in the folder. */
const nodeproof = (...words) => execFileSync(PROGRAM, [...words, "--quiet"], { cwd: folder });

/** Certificates and radii of the example's model on a graph, and their report. */
function report(graph, out, ...more) {
  const about = ["--graph", graph, "--model", MODEL];
  nodeproof("certify", ...about, "--global-budget", "4", "--local-budget", "2", "--out", "certificates.jsonl");
  nodeproof("radius", ...about, "--max-budget", "12", "--local-budget", "2", "--out", "radii.jsonl");
  nodeproof("report", "certificates.jsonl", "radii.jsonl", "--graph", graph, "--out", out, ...more);
  return pathToFileURL(join(folder, out)).href;
}

const options = { skip: PROGRAM ? false : "NODEPROOF does not name the program" };

test("a report of the program tells of a node and its witness", options, async () => {
  const address = report(PAPERS, "papers.html", "--title", "Papers");
  const { page, context, trouble } = await visit(browser, address);
  assert.equal(await page.title(), "Papers");
  await page.selectOption("select >> nth=0", { label: "nonrobust" });
  const nonrobust = page.locator(".rows tbody tr[data-place]");
  assert.ok((await nonrobust.count()) > 0);
  await nonrobust.first().click();
  const text = await page.locator("dialog").textContent();
  assert.match(text, /Witness/);
  assert.match(text, /(add|remove) “/);
  assert.deepEqual(trouble, []);
  await context.close();
});

test("a report of the program names and draws the edges that a witness deletes", options, async () => {
  const about = ["--graph", PAPERS, "--model", MODEL];
  nodeproof("certify", ...about, "--delete-edges", "2", "--out", "unlinked.jsonl");
  nodeproof("report", "unlinked.jsonl", "--graph", PAPERS, "--out", "unlinked.html");
  const { page, context, trouble } = await visit(browser, pathToFileURL(join(folder, "unlinked.html")).href);
  await page.selectOption("select >> nth=0", { label: "nonrobust" });
  await page.locator(".rows tbody tr[data-place]").first().click();
  const lines = await page.locator(".witness").first().locator("li").allTextContents();
  assert.ok(lines.length > 0 && lines.every((line) => /^unlink .+ from .+/.test(line)), lines.join());
  assert.equal(await page.locator(".neighbourhood > svg .deleted > g").count(), lines.length);
  assert.deepEqual(trouble, []);
  await context.close();
});

test("a report of the program shows what one attacker changes in all", options, async () => {
  const about = ["--graph", PAPERS, "--model", MODEL, "--local-budget", "2"];
  nodeproof("certify", ...about, "--global-budget", "2", "--out", "two.jsonl");
  nodeproof("collective", ...about, "--global-budget", "1,2,4", "--out", "together.jsonl");
  const [, ...answers] = readFileSync(join(folder, "together.jsonl"), "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  nodeproof("report", "two.jsonl", "together.jsonl", "--graph", PAPERS, "--out", "together.html");
  const { page, context, trouble } = await visit(browser, pathToFileURL(join(folder, "together.html")).href);
  const section = page.locator("section.together");
  const rows = await section.locator(".answers tbody tr").allInnerTexts();
  assert.equal(rows.length, 3);
  for (const [place, { global, at_most, at_least, by_radii, alone }] of answers.entries()) {
    const [budget, most, least, , radii, single] = rows[place].split("\t");
    assert.deepEqual(
      [budget, parseInt(most), least, radii, single],
      [`${global}`, at_most, `${at_least}`, `${by_radii}`, `${alone}`],
    );
  }
  const { global, at_most, flips, changed } = answers[2];
  assert.ok((await section.innerText()).includes(`changes at most ${at_most} of 24 predictions`));
  await section.locator("summary", { hasText: `Q = ${global}:` }).click();
  const lists = section.locator("details[open] ul");
  assert.equal((await lists.first().innerText()).match(/\b(add|remove)\b/g).length, flips.length);
  assert.equal(await lists.nth(1).locator("li").count(), changed.length);
  assert.deepEqual(trouble, []);
  await context.close();
});

test("hostile names in a graph neither break nor script the report", options, async () => {
  execFileSync("python3", [HOSTILE, join(folder, "hostile.npz")]);
  const address = report("hostile.npz", "hostile.html", "--title", "<script>window.broken = true</script>");
  for (const node of [0, 1, 2, 5, 7, 8]) {
    const { page, context, trouble } = await visit(browser, `${address}#node-${node}`);
    assert.ok(await page.$eval("dialog", (dialog) => dialog.open));
    assert.equal(await page.evaluate(() => window.broken), undefined);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "it scrolls sideways");
    assert.deepEqual(trouble, []);
    await context.close();
  }
  const { page, context } = await visit(browser, address);
  assert.match(await page.locator(".rows tbody").textContent(), /<img src=x onerror='window.broken = true'> node 1/);
  assert.equal(await page.title(), "<script>window.broken = true</script>");
  await context.close();
});
