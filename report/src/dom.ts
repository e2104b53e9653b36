/** Making elements. Text always goes in as text: nothing here parses HTML. */

export type Child = Node | string | number | null | undefined | false | Child[];
type Attributes = Record<string, string | number | boolean | null | undefined | ((event: never) => void)>;

/** An element with attributes (`onclick` and the like add listeners; `false` and `null` leave one out) and children. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  setAttributes(element, attributes);
  append(element, children);
  return element;
}

/** The same for SVG. */
export function s<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): SVGElementTagNameMap[K] {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  setAttributes(element, attributes);
  append(element, children);
  return element;
}

function setAttributes(element: Element, attributes: Attributes): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value as EventListener);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, String(value));
  }
}

function append(element: Element, children: Child[]): void {
  for (const child of children) {
    if (Array.isArray(child)) append(element, child);
    else if (child instanceof Node) element.append(child);
    else if (child != null && child !== false) element.append(String(child));
  }
}

/** The element of the template with this id. */
export function byId<T extends HTMLElement>(id: string): T {
  const element = document.getElementById(id);
  if (!element) throw new Error(`the page has no element ${id}`);
  return element as T;
}

const LONGEST_NAME = 400;
/** Characters that override or isolate direction. Unpaired, they reach beyond the element they stand in. */
const STEERING = /[\u202a-\u202e\u2066-\u2069]/g;

/** A name from the data: it cannot disturb the text around it, and is cut where nobody would read on. */
export function named(text: string): HTMLElement {
  const tame = text.replace(STEERING, "");
  const cut = tame.length > LONGEST_NAME;
  return h("bdi", { class: "name" }, cut ? `${tame.slice(0, LONGEST_NAME).replace(/[\ud800-\udbff]$/, "")}…` : tame);
}
