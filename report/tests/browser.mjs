// Starts the browser that the tests drive: the one CHROMIUM names, or one that is on the PATH.

import { execFileSync } from "node:child_process";
import { chromium } from "playwright-core";

const ARGUMENTS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

function find() {
  if (process.env.CHROMIUM) return process.env.CHROMIUM;
  for (const name of ["chromium", "chromium-browser", "google-chrome", "chrome"])
    try {
      return execFileSync("which", [name], { encoding: "utf8" }).trim();
    } catch {
      // Perhaps it goes by the next name.
    }
  throw new Error("no browser found: name one in the variable CHROMIUM");
}

export function launch() {
  return chromium.launch({ executablePath: find(), args: ARGUMENTS });
}

/** Opens a page, waits until `ready` is there, and keeps watch: `trouble` collects errors, dialogs and requests for anything but the page. */
export async function visit(browser, address, { ready = ".rows tbody tr[data-place]", ...options } = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  const trouble = [];
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && trouble.push(message.text()));
  page.on("pageerror", (error) => trouble.push(String(error)));
  page.on("dialog", (dialog) => {
    trouble.push(`dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  const own = address.split("#")[0];
  page.on("request", (request) => {
    const url = request.url().split("#")[0];
    if (url !== own && !url.startsWith("data:") && !url.startsWith("blob:")) trouble.push(`request: ${url}`);
  });
  await page.goto(address);
  await page.waitForSelector(ready);
  return { page, context, trouble };
}
