// The committed page: made of these sources, safe to fill in, and closed to everything it does not bring along.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { test } from "node:test";

const asset = (name) => readFileSync(new URL(`../../crates/nodeproof-report/assets/${name}`, import.meta.url), "utf8");
const page = asset("report.html");

test("a fresh build gives the committed bytes", () => {
  execFileSync(process.execPath, ["build.mjs", "--check"], { cwd: new URL("..", import.meta.url), stdio: "inherit" });
});

test("there is one place for the data, inside the element for it", () => {
  assert.equal(page.split("__NODEPROOF_DATA__").length, 2);
  assert.match(page, /<script type="application\/json" id="data">\s*__NODEPROOF_DATA__\s*<\/script>/);
});

test("only the script of the page may run", () => {
  const [, policy] = page.match(/http-equiv="Content-Security-Policy" content="([^"]+)"/);
  const scripts = [...page.matchAll(/<script>([\s\S]*?)<\/script>/g)];
  assert.equal(scripts.length, 1);
  const hash = createHash("sha256").update(scripts[0][1]).digest("base64");
  assert.match(policy, /^default-src 'none'; /);
  assert.ok(policy.includes(`script-src 'sha256-${hash}';`), policy);
  assert.doesNotMatch(policy, /https?:|\*|unsafe-eval/);
});

test("every package in the page has its licence in the page and in the file beside it", () => {
  const listed = [...page.matchAll(/<li>(\S+) (\d\S+), ([\w.-]+?)\. /g)].map(
    ([, name, version]) => `${name} ${version}`,
  );
  assert.ok(
    listed.some((entry) => entry.startsWith("@observablehq/plot ")),
    listed.join(),
  );
  for (const entry of listed) assert.ok(asset("LICENCES.txt").includes(`${entry} (`), entry);
});
