import { type AnyNode, parse, type Token } from 'acorn';
import { KNOWN_GLOBALS, KNOWN_MEMBERS } from './known-names.ts';
import { isPlainText, type Veil } from './veil.ts';

/** Source as a judge may see it, with what was counted on the way. */
export interface NormalizedSource {
  lines: string[];
  facts: {
    nodes: number;
    functions: number;
    loops: number;
    awaits: number;
    regularExpressions: number;
    computedMembers: number;
    /** Names of the language and the host that are used as variables. */
    globals: string[];
    droppedCommentCharacters: number;
  };
}

interface Place {
  node: AnyNode;
  parent: AnyNode | undefined;
  key: string;
  /** One token stands for a property and the variable of the same name: `{ a }`, `{ a = 1 }`. */
  shorthand: boolean;
}

/**
 * Only tokens are written out, so comments and odd spaces are gone; names of the author's become stand-ins, long strings base 64.
 * Throws SyntaxError when the source does not parse.
 */
export function normalizeSource(source: string, veil: Veil): NormalizedSource {
  const tokens: Token[] = [];
  let droppedCommentCharacters = 0;
  const program = parse(source, {
    ecmaVersion: 'latest',
    sourceType: 'script',
    allowHashBang: true,
    onToken: tokens,
    onComment: (_block, text) => {
      droppedCommentCharacters += text.length;
    },
  });
  const replacements = new Map<string, string>();
  const facts = { nodes: 0, functions: 0, loops: 0, awaits: 0, regularExpressions: 0, computedMembers: 0 };
  const globals = new Set<string>();
  const places: Place[] = [{ node: program, parent: undefined, key: '', shorthand: false }];
  for (let place = places.pop(); place !== undefined; place = places.pop()) {
    count(facts, place.node);
    if (place.node.type === 'Identifier' && roleOf(place) === 'variable' && KNOWN_GLOBALS.has(place.node.name))
      globals.add(place.node.name);
    const text = replacement(place, veil);
    if (text !== undefined) replacements.set(`${place.node.start}:${place.node.end}`, text);
    places.push(...childrenOf(place));
  }
  const lines = writeTokens(source, tokens, replacements);
  return { lines, facts: { ...facts, globals: [...globals].sort(), droppedCommentCharacters } };
}

function childrenOf({ node, shorthand }: Place): Place[] {
  const property = node.type === 'Property' && node.shorthand;
  const found: Place[] = [];
  for (const [key, value] of Object.entries(node)) {
    if (property && key === 'key') continue;
    const passesOn = property || (shorthand && node.type === 'AssignmentPattern' && key === 'left');
    for (const child of Array.isArray(value) ? value : [value]) {
      if (isNode(child)) found.push({ node: child, parent: node, key, shorthand: passesOn });
    }
  }
  return found;
}

function isNode(value: unknown): value is AnyNode {
  return (
    typeof value === 'object' && value !== null && 'type' in value && 'start' in value && typeof value.type === 'string'
  );
}

function count(facts: Omit<NormalizedSource['facts'], 'globals' | 'droppedCommentCharacters'>, node: AnyNode): void {
  facts.nodes += 1;
  if (node.type.includes('Function')) facts.functions += 1;
  if (/^(For|While|DoWhile)/.test(node.type)) facts.loops += 1;
  if (node.type === 'AwaitExpression') facts.awaits += 1;
  if (node.type === 'MemberExpression' && node.computed && node.property.type !== 'Literal') facts.computedMembers += 1;
  if (node.type === 'Literal' && node.regex) facts.regularExpressions += 1;
}

function roleOf({ parent, key }: Place): 'variable' | 'member' | 'label' | 'keep' {
  if (parent === undefined || parent.type === 'MetaProperty') return 'keep';
  if (key === 'label') return 'label';
  const named = parent.type === 'MemberExpression' ? key === 'property' : key === 'key';
  return named && 'computed' in parent && !parent.computed ? 'member' : 'variable';
}

function replacement(place: Place, veil: Veil): string | undefined {
  const { node, parent } = place;
  if (node.type === 'Identifier') return identifier(place, node.name, veil);
  if (node.type === 'PrivateIdentifier') return `#${veil.name(node.name)}`;
  if (node.type === 'TemplateElement') return veil.text(node.value.cooked ?? node.value.raw).replaceAll(/[`\\$]/g, '_');
  if (node.type !== 'Literal') return undefined;
  if (node.regex) return regularExpression(node.regex.pattern, node.regex.flags, veil);
  if (typeof node.value !== 'string') return undefined;
  const key = roleOf(place) === 'member' && parent?.type !== 'MemberExpression';
  return JSON.stringify(key ? memberName(node.value, veil) : literal(node.value, veil));
}

function identifier(place: Place, name: string, veil: Veil): string {
  const role = roleOf(place);
  if (role === 'keep') return name;
  if (role === 'member') return memberName(name, veil);
  const variable = KNOWN_GLOBALS.has(name) && role === 'variable' ? name : veil.variable(name);
  return place.shorthand ? `${memberName(name, veil)}: ${variable}` : variable;
}

function memberName(name: string, veil: Veil): string {
  return KNOWN_MEMBERS.has(name) ? name : veil.name(name);
}

function literal(value: string, veil: Veil): string {
  return KNOWN_MEMBERS.has(value) || KNOWN_GLOBALS.has(value) ? value : veil.text(value);
}

function regularExpression(pattern: string, flags: string, veil: Veil): string {
  return isPlainText(pattern, 48) ? `/${pattern}/${flags}` : `/${veil.text(pattern).replaceAll('/', '_')}/${flags}`;
}

/** Tokens with the space between them made plain: a line end where there was one, else one blank. */
function writeTokens(source: string, tokens: readonly Token[], replacements: ReadonlyMap<string, string>): string[] {
  let text = '';
  let depth = 0;
  let end = 0;
  for (const token of tokens) {
    const gap = source.slice(end, token.start);
    const raw = source.slice(token.start, token.end);
    if (raw === '}') depth = Math.max(0, depth - 1);
    if (text !== '' && gap !== '')
      text += /[\n\r\u2028\u2029]/.test(gap) ? `\n${'  '.repeat(Math.min(depth, 20))}` : ' ';
    text += replacements.get(`${token.start}:${token.end}`) ?? raw;
    if (raw === '{' || raw === '${') depth += 1;
    end = token.end;
  }
  return text.split('\n');
}
