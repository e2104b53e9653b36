// Builds the page: one HTML file with everything in it but the data, and the licences of what went into it.
//
//   node build.mjs           writes crates/nodeproof-report/assets/
//   node build.mjs --check   fails where what is there differs from a fresh build

import { build } from "esbuild";
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const assets = join(here, "../crates/nodeproof-report/assets");
const placeholder = "__NODEPROOF_DATA__";

/** The minified text of one entry point, and the npm packages that it contains. */
async function bundle(entry, options) {
  const result = await build({
    absWorkingDir: here,
    entryPoints: [entry],
    bundle: true,
    minify: true,
    write: false,
    metafile: true,
    charset: "ascii",
    legalComments: "none",
    logLevel: "warning",
    ...options,
  });
  const [output] = Object.values(result.metafile.outputs);
  const used = Object.entries(output.inputs).filter(([, { bytesInOutput }]) => bytesInOutput > 0);
  return { text: result.outputFiles[0].text.trim(), packages: packagesOf(used.map(([path]) => path)) };
}

/** The folders below node_modules that the files lie in, each once, in alphabetical order. */
function packagesOf(paths) {
  const folders = paths.flatMap((path) => path.match(/^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/) ?? []);
  return [...new Set(folders)].sort().map(describePackage);
}

function describePackage(folder) {
  const { name, version, license } = JSON.parse(readFileSync(join(here, folder, "package.json"), "utf8"));
  const file = readdirSync(join(here, folder)).find((entry) => /^licen[cs]e/i.test(entry));
  if (!file || !license) throw new Error(`${folder} does not say under which licence it is`);
  const text = readFileSync(join(here, folder, file), "utf8")
    .replaceAll("\r\n", "\n")
    .trim();
  const copyright = text.match(/^copyright .*$/im)?.[0].trim() ?? "";
  return { name, version, license, text, copyright };
}

/** A list of the packages with their copyright, then each distinct licence text once. */
function licenceSection(packages) {
  const items = packages.map(
    ({ name, version, license, copyright }) => `<li>${escape(`${name} ${version}, ${license}. ${copyright}`)}</li>`,
  );
  const terms = new Set(
    packages.map(({ text, copyright }) =>
      text
        .replace(copyright, "")
        .replace(/^ISC License/, "")
        .trim(),
    ),
  );
  return [`<ul>`, ...items, `</ul>`, ...[...terms].map((text) => `<pre>${escape(text)}</pre>`)].join("\n");
}

function licenceFile(packages) {
  const entries = packages.map(({ name, version, license, text }) => `${name} ${version} (${license})\n\n${text}\n`);
  return `The page of nodeproof report contains these packages.\n\n${entries.join(`\n${"-".repeat(80)}\n\n`)}`;
}

function escape(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

/** The template with each slot filled exactly once. */
function fill(template, slots) {
  return Object.entries(slots).reduce((page, [slot, text]) => {
    const pieces = page.split(`{{${slot}}}`);
    if (pieces.length !== 2) throw new Error(`the template must have {{${slot}}} once`);
    return pieces.join(text);
  }, template);
}

/** Text of a script that no HTML parser takes for the end of the element, or for a comment. */
function scriptText(text) {
  const safe = text.replace(/<(?=\/script|script|!--)/gi, "\\x3C");
  if (safe.includes(placeholder)) throw new Error("the script must not contain the placeholder");
  return safe;
}

async function makePage() {
  const { text, packages } = await bundle("src/main.ts", { format: "iife", target: "es2022" });
  const style = await bundle("src/style.css", { target: ["chrome111", "firefox113", "safari16.4"] });
  const script = scriptText(text);
  const page = fill(readFileSync(join(here, "src/template.html"), "utf8"), {
    policy: [
      "default-src 'none'",
      "style-src 'unsafe-inline'",
      "img-src data:",
      `script-src 'sha256-${createHash("sha256").update(script).digest("base64")}'`,
      "base-uri 'none'",
      "form-action 'none'",
    ].join("; "),
    licences: licenceSection(packages),
    style: style.text,
    script,
  });
  if (page.split(placeholder).length !== 2) throw new Error(`the page must have ${placeholder} once`);
  return { "report.html": page, "LICENCES.txt": licenceFile(packages) };
}

const files = await makePage();
mkdirSync(assets, { recursive: true });
for (const [name, text] of Object.entries(files)) {
  const path = join(assets, name);
  if (!process.argv.includes("--check")) {
    writeFileSync(path, text);
    console.log(`${relative(process.cwd(), path)}: ${text.length} characters`);
  } else if (readFileSync(path, "utf8") !== text) {
    console.error(`${relative(process.cwd(), path)} is not what the sources make: run npm run build`);
    process.exitCode = 1;
  }
}
