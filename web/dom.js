// The only way this page makes and changes elements. Text from outside is always a text node.

/**
 * Makes an element.
 * @param {string} tag
 * @param {Object<string, string|number|boolean|null|undefined>} [attributes] null, undefined and false are left out, true is empty
 * @param {...(Node|string|null)} children strings become text nodes
 * @returns {HTMLElement}
 */
export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) setAttribute(element, name, value);
  for (const child of children) if (child != null) element.append(child);
  return element;
}

/**
 * Sets the text unless it is there already, so that an unchanged value costs no layout.
 * @param {Element} element
 * @param {string} text
 */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/**
 * Sets, or with null, undefined or false removes, an attribute where that changes something.
 * @param {Element} element
 * @param {string} name
 * @param {string|number|boolean|null|undefined} value
 */
export function setAttribute(element, name, value) {
  if (value == null || value === false) {
    if (element.hasAttribute(name)) element.removeAttribute(name);
    return;
  }
  const text = value === true ? "" : String(value);
  if (element.getAttribute(name) !== text) element.setAttribute(name, text);
}

/**
 * Sets a CSS custom property where that changes something.
 * @param {HTMLElement} element
 * @param {string} name
 * @param {string} value
 */
export function setStyle(element, name, value) {
  if (element.style.getPropertyValue(name) !== value) element.style.setProperty(name, value);
}

/** Elements by key: made when a key appears, removed with it, put in order, and otherwise left alone. */
export class Keyed {
  constructor(parent, make) {
    this.parent = parent;
    this.make = make;
    this.items = new Map();
  }

  update(entries) {
    const keys = new Set(entries.map(([key]) => key));
    for (const [key, item] of this.items) if (!keys.has(key)) {
      item.element.remove();
      this.items.delete(key);
    }
    entries.forEach(([key, data], place) => {
      let item = this.items.get(key);
      if (!item) this.items.set(key, item = this.make());
      if (this.parent.children[place] !== item.element) this.parent.insertBefore(item.element, this.parent.children[place] ?? null);
      item.update(data);
    });
  }
}
