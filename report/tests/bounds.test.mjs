// Lower bounds must read as lower bounds.

import { build } from "esbuild";
import assert from "node:assert/strict";
import { test } from "node:test";

const { outputFiles } = await build({
  entryPoints: ["src/bounds.ts"],
  bundle: true,
  format: "esm",
  write: false,
});
const { atLeast } = await import(`data:text/javascript,${encodeURIComponent(outputFiles[0].text)}`);

/** The number that a reader takes from the text. */
const read = (text) => Number(text.replaceAll("−", "-"));

test("bounds are rounded down, however small or large", () => {
  const shown = [0.9996, -0.5001, 0.000798, -1.04e-5, 1.0e-5, 2.99e7, 123.46, 1, -1, 0].map(atLeast);
  const expected = ["0.999", "−0.501", "7.9e−4", "−1.1e−5", "1.0e−5", "2.9e7", "123.4", "1.000", "−1.000", "0"];
  assert.deepEqual(shown, expected);
  for (let power = -320; power <= 307; power += 1) {
    for (const digits of [1, 1.04, 3.1234567, 9.96, 9.9999]) {
      for (const value of [Number(`${digits}e${power}`), Number(`-${digits}e${power}`)]) {
        const [size, text] = [Math.abs(value), atLeast(value)];
        const coarse = size < 1e-3 ? 0.2 * size : Math.max(0.2 * size, 1e-3);
        assert.ok(read(text) <= value + 1e-6 * size && read(text) >= value - coarse, `${value} reads ${text}`);
      }
    }
  }
});
