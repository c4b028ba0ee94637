/** `{{path | formatter argument | …}}` inside text. Parsed in one pass; nothing is evaluated. */

export interface TemplateReference {
  /** As written, for messages. */
  source: string;
  path: string[];
  formatters: { name: string; argument: string }[];
}

type TemplatePart = string | TemplateReference;
type ParsedTemplate = { parts: TemplatePart[] } | { problem: string };

const OPEN = '{{';
const CLOSE = '}}';
const ESCAPE = '\\{{';

const ROOTS = ['lastTool', 'tool', 'toolCall', 'user', 'firstUser', 'model'] as const;
const FORMATTERS = [
  'number',
  'fixed',
  'signed',
  'percent',
  'currency',
  'json',
  'join',
  'pluck',
  'count',
  'after',
  'before',
] as const;

/** Splits text into literal parts and references. `\{{` is a literal `{{`. */
export function parseTemplate(text: string): ParsedTemplate {
  const parts: TemplatePart[] = [];
  let literal = '';
  let position = 0;
  for (;;) {
    const open = text.indexOf(OPEN, position);
    if (open === -1) break;
    if (open > 0 && text[open - 1] === ESCAPE[0]) {
      literal += `${text.slice(position, open - 1)}${OPEN}`;
      position = open + OPEN.length;
      continue;
    }
    const close = text.indexOf(CLOSE, open);
    if (close === -1) return { problem: `has ${OPEN} without ${CLOSE}; write ${ESCAPE} for a literal one` };
    const reference = parseReference(text.slice(open + OPEN.length, close));
    if ('problem' in reference) return reference;
    literal += text.slice(position, open);
    if (literal !== '') parts.push(literal);
    parts.push(reference);
    literal = '';
    position = close + CLOSE.length;
  }
  literal += text.slice(position);
  if (literal !== '') parts.push(literal);
  return { parts };
}

function parseReference(inner: string): TemplateReference | { problem: string } {
  const source = inner.trim();
  const [first = '', ...rest] = source.split('|').map((piece) => piece.trim());
  const path = first.split('.').map((segment) => segment.trim());
  if (path.includes('')) return { problem: `has the reference "${source}" with an empty name in its path` };
  const [root = ''] = path;
  if (!(ROOTS as readonly string[]).includes(root))
    return { problem: `refers to "${root}"; a reference starts with one of ${ROOTS.join(', ')}` };
  if ((root === 'tool' || root === 'toolCall') && path.length < 2)
    return { problem: `refers to "${source}" without a name: write ${root}.NAME` };
  const formatters = rest.map(parseFormatter);
  const unknown = formatters.find(({ name }) => !(FORMATTERS as readonly string[]).includes(name));
  if (unknown) return { problem: `uses the formatter "${unknown.name}"; known are ${FORMATTERS.join(', ')}` };
  return { source, path, formatters };
}

function parseFormatter(text: string): { name: string; argument: string } {
  const space = text.indexOf(' ');
  if (space === -1) return { name: text, argument: '' };
  const argument = text.slice(space + 1).trim();
  const quoted = argument.length >= 2 && argument.startsWith('"') && argument.endsWith('"');
  return { name: text.slice(0, space), argument: quoted ? argument.slice(1, -1) : argument };
}
