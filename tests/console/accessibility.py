"""What a page must hold for readers with weak eyes or without a mouse, asked of the browser itself.

Each function returns what is wrong, as text; an empty list is right.
"""

from __future__ import annotations

from typing import Any

TABS_MAX = 60
_NAMELESS = """() => [...document.querySelectorAll(
    'button, a[href], input:not([type=hidden]), textarea, [role=button], [role=combobox],'
    + '[tabindex="0"]')]
  .filter(e => e.checkVisibility({visibilityProperty: true}) && !e.closest('[aria-hidden=true]'))
  .filter(e => !(e.getAttribute('aria-label') || e.textContent.trim() || e.title || e.placeholder
      || (e.labels && e.labels.length) || e.closest('label') || e.getAttribute('aria-labelledby')))
  .map(e => e.outerHTML.slice(0, 200))"""
_FAINT = """() => {
  const parsed = text => {
    const found = text.match(/[\\d.]+/g).map(Number);
    return {rgb: found.slice(0, 3), alpha: found.length > 3 ? found[3] : 1};
  };
  const over = (top, ground) => top.rgb.map((c, i) => c * top.alpha + ground[i] * (1 - top.alpha));
  const luminance = rgb => {
    const [r, g, b] = rgb.map(c => c / 255).map(
        c => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = element => {
    const layers = [];
    for (let e = element; e; e = e.parentElement) {
      const found = parsed(getComputedStyle(e).backgroundColor);
      if (found.alpha > 0) layers.push(found);
      if (found.alpha === 1) break;
    }
    return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255]);
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const faint = [];
  const seen = new Set();
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || seen.has(element)) continue;
    seen.add(element);
    if (!element.checkVisibility({visibilityProperty: true, opacityProperty: true})) continue;
    if (element.closest('[disabled], .disabled, [aria-hidden=true], script, style')) continue;
    const style = getComputedStyle(element);
    const below = ground(element);
    const text = luminance(over(parsed(style.color), below)), back = luminance(below);
    const ratio = (Math.max(text, back) + 0.05) / (Math.min(text, back) + 0.05);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    if (ratio < (large ? 3 : 4.5))
      faint.push(`${ratio.toFixed(2)} ${element.className}: `
          + walker.currentNode.data.trim().slice(0, 60));
  }
  return faint;
}"""
_FOCUSED = """() => {
  const e = document.activeElement;
  if (!e || e === document.body) return null;
  const marked = e => {
    const style = getComputedStyle(e);
    return (style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0)
        || style.boxShadow !== 'none';
  };
  const field = e.closest('.q-field, .q-checkbox, .q-toggle');
  const helper = e.querySelector('.q-focus-helper');
  const shows = marked(e)
      || (field && (field.classList.contains('q-field--focused') || marked(field)))
      || (helper && parseFloat(getComputedStyle(helper).opacity) > 0);
  return {shows: Boolean(shows), what: e.outerHTML.slice(0, 160)};
}"""


def nameless(page: Any) -> list[str]:
    """Controls that a screen reader could not name."""
    found: list[str] = page.evaluate(_NAMELESS)
    return found


def faint(page: Any) -> list[str]:
    """Texts with less contrast than 4.5:1, or 3:1 for large ones."""
    found: list[str] = page.evaluate(_FAINT)
    return found


def lost_focus(page: Any) -> list[str]:
    """Elements that the Tab key reaches and that do not show it."""
    found = []
    for _ in range(TABS_MAX):
        page.keyboard.press("Tab")
        focused = page.evaluate(_FOCUSED)
        if focused is None:
            break
        if not focused["shows"]:
            found.append(focused["what"])
    return found
