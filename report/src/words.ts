/** Numbers and names as people read them. */

export const VERDICTS = ["robust", "nonrobust", "undecided"] as const;
export type Verdict = (typeof VERDICTS)[number];
export const VERDICT_MARK: Record<Verdict, string> = { robust: "✓", nonrobust: "✕", undecided: "?" };

const whole = new Intl.NumberFormat("en-GB");
const percentage = new Intl.NumberFormat("en-GB", {
  style: "percent",
  minimumFractionDigits: 1,
  maximumFractionDigits: 1,
});
const oneDecimal = new Intl.NumberFormat("en-GB", { minimumFractionDigits: 1, maximumFractionDigits: 1 });

const compact = new Intl.NumberFormat("en-GB", { notation: "compact" });

export function count(number: number): string {
  return whole.format(number);
}

/** A count where there is little room: 12K. */
export function roughCount(number: number): string {
  return compact.format(number);
}

/** A share in per cent. Only all is 100 %, and only none is 0 %. */
export function percent(share: number): string {
  if (!Number.isFinite(share)) return "–";
  if (share > 0 && share < 0.0005) return "< 0.1%";
  if (share < 1 && share >= 0.9995) return "> 99.9%";
  return share === 0 || share === 1 ? `${share * 100}%` : percentage.format(share);
}

export function decimal(number: number): string {
  return oneDecimal.format(number);
}

/** A margin with three significant digits and a true minus sign; tiny and huge ones in powers of ten. */
export function margin(value: number): string {
  const size = Math.abs(value);
  const digits =
    size === 0 ? "0" : size < 1e-3 || size >= 1e5 ? value.toExponential(1) : value.toFixed(size < 10 ? 3 : 1);
  return digits.replace("-", "−").replace("e-", "e−").replace("e+", "e");
}

/** A time with two digits at least: “0.8 s”, “14 s”, “3 min”. */
export function duration(seconds: number): string {
  if (seconds < 0.1) return "< 0.1 s";
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  return seconds < 180 ? `${Math.round(seconds)} s` : `${count(Math.round(seconds / 60))} min`;
}

export function plural(number: number, one: string, many = `${one}s`): string {
  return `${count(number)} ${number === 1 ? one : many}`;
}

export function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Characters that steer the direction of text, or that nobody sees. */
const UNSEEN = /[\p{Cc}\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]/gu;
const segmenter = new Intl.Segmenter("en", { granularity: "grapheme" });

/** A name for places that hold one line of bare text (labels of charts, options, titles): short, and steering nothing. */
export function short(text: string, length = 40): string {
  const plain = text
    .slice(0, 40 * length)
    .replace(UNSEEN, " ")
    .replace(/\s+/g, " ")
    .trim();
  const characters = Array.from(segmenter.segment(plain), ({ segment }) => segment);
  if (characters.length === 0) return "(no name)";
  return characters.length > length ? `${characters.slice(0, length - 1).join("")}…` : plain;
}

/** Whether a name has anything that can be seen. */
export function isBlank(text: string): boolean {
  return !/[\p{L}\p{N}\p{P}\p{S}]/u.test(text);
}
