/** What the names and attributes of elements say about their text. */

/** Elements without text for a reader, or whose text is not part of the page. */
const DROPPED: ReadonlySet<string> = new Set([
  'applet',
  'audio',
  'button',
  'canvas',
  'datalist',
  'embed',
  'frame',
  'frameset',
  'iframe',
  'input',
  'map',
  'math',
  'noembed',
  'noframes',
  'noscript',
  'object',
  'optgroup',
  'option',
  'script',
  'select',
  'style',
  'svg',
  'template',
  'textarea',
  'title',
  'video',
]);

/** Navigation and the like: text around the content. */
const AROUND: ReadonlySet<string> = new Set(['nav', 'aside', 'header', 'footer', 'menu']);
const AROUND_ROLES: ReadonlySet<string> = new Set(['navigation', 'banner', 'contentinfo', 'complementary', 'search']);

const BLOCKS: ReadonlySet<string> = new Set([
  'address',
  'article',
  'aside',
  'blockquote',
  'body',
  'caption',
  'center',
  'dd',
  'details',
  'dialog',
  'div',
  'dl',
  'dt',
  'fieldset',
  'figcaption',
  'figure',
  'footer',
  'form',
  'header',
  'hgroup',
  'html',
  'legend',
  'li',
  'main',
  'menu',
  'nav',
  'ol',
  'p',
  'section',
  'summary',
  'ul',
]);

export type Attributes = Readonly<Record<string, string>>;

/** `Main` and `Article`: the content of the page, as its author marks it. */
export type Scope = 'Main' | 'Article' | 'Body' | 'Around';

export function isDropped(name: string, attributes: Attributes): boolean {
  return DROPPED.has(name) || isHidden(name, attributes);
}

/** Hidden by an attribute. What a style sheet hides is not known here. */
function isHidden(name: string, attributes: Attributes): boolean {
  if (attributes['hidden'] !== undefined || attributes['aria-hidden']?.toLowerCase() === 'true') return true;
  if (name === 'dialog' && attributes['open'] === undefined) return true;
  const style = attributes['style'];
  return style !== undefined && hidesText(style.slice(0, MAX_STYLE_CHARACTERS));
}

const MAX_STYLE_CHARACTERS = 4_096;
const HIDING: Readonly<Record<string, RegExp>> = {
  display: /^none/,
  visibility: /^(?:hidden|collapse)/,
  'content-visibility': /^hidden/,
  opacity: /^0?\.?0*%?$/,
  'font-size': /^0?\.?0*[a-z%]*$/,
  'max-height': /^0[a-z%]*$/,
  'max-width': /^0[a-z%]*$/,
  height: /^0[a-z%]*$/,
  width: /^0[a-z%]*$/,
  color: /^transparent/,
  left: /^-\d{3,}/,
  top: /^-\d{3,}/,
  'text-indent': /^-\d{3,}/,
  'clip-path': /^inset\((?:50|100)%/,
  clip: /^rect\((?:0|1px)[, ]/,
};

function hidesText(style: string): boolean {
  return style
    .toLowerCase()
    .split(';')
    .some((declaration) => {
      const [property = '', value = ''] = declaration.split(':', 2);
      return HIDING[property.trim()]?.test(value.trim()) === true;
    });
}

export function isBlock(name: string): boolean {
  return BLOCKS.has(name);
}

/** The scope of the content of an element within one of this scope. */
export function scopeOf(name: string, attributes: Attributes, around: Scope): Scope {
  const role = attributes['role']?.toLowerCase() ?? '';
  if (around === 'Around') return around;
  if (AROUND.has(name) || AROUND_ROLES.has(role)) return isOwnPart(name, around) ? around : 'Around';
  if (around === 'Main' || name === 'main' || role === 'main') return 'Main';
  return name === 'article' || role === 'article' ? 'Article' : around;
}

/** The header of an article belongs to it. */
function isOwnPart(name: string, around: Scope): boolean {
  return (name === 'header' || name === 'footer') && around !== 'Body';
}

/** The level of a heading, from 1 to 6. */
export function headingLevel(name: string): number | undefined {
  const digits = /^h([1-6])$/.exec(name)?.[1];
  return digits === undefined ? undefined : Number(digits);
}
