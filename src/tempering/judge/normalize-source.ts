import { type AnyNode, parse, type Token } from 'acorn';
import { WELL_KNOWN_GLOBALS } from './well-known-names.ts';
import type { Obfuscator } from './obfuscation.ts';
import { normalizeRegExp } from './normalize-regexp.ts';

/** The source in the form a judge may read, with figures about it. */
export interface NormalizedSource {
  lines: string[];
  facts: {
    nodes: number;
    functions: number;
    loops: number;
    awaits: number;
    regularExpressions: number;
    computedMembers: number;
    /** Bytes of string, template and regular expression texts, and of all other tokens. */
    textBytes: number;
    codeBytes: number;
    /** Names of the language and the host that the source uses as variables. */
    globals: string[];
    droppedCommentCharacters: number;
  };
}

interface NodePosition {
  node: AnyNode;
  parent: AnyNode | undefined;
  key: string;
  /** One token is both a property and the variable of the same name: `{ a }`, `{ a = 1 }`. */
  shorthand: boolean;
}

/**
 * Prints tokens only, which drops comments and unusual white space. Names and texts chosen by the author become placeholders,
 * and the table of the obfuscator has each text whole.
 * Throws SyntaxError when the source does not parse.
 */
export function normalizeSource(source: string, obfuscator: Obfuscator): NormalizedSource {
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
  const pending: NodePosition[] = [{ node: program, parent: undefined, key: '', shorthand: false }];
  for (let position = pending.pop(); position !== undefined; position = pending.pop()) {
    count(facts, position.node);
    if (
      position.node.type === 'Identifier' &&
      roleOf(position) === 'variable' &&
      WELL_KNOWN_GLOBALS.has(position.node.name)
    )
      globals.add(position.node.name);
    const text = replacement(position, obfuscator);
    const place = `${position.node.start}:${position.node.end}`;
    if (text !== undefined && !replacements.has(place)) replacements.set(place, text);
    if (position.node.type === 'ArrayExpression') addListTexts(position.node.elements, replacements, obfuscator);
    pending.push(...childrenOf(position));
  }
  const lines = printTokens(source, tokens, replacements);
  return { lines, facts: { ...facts, ...bytesOf(tokens), globals: [...globals].sort(), droppedCommentCharacters } };
}

function childrenOf({ node, shorthand }: NodePosition): NodePosition[] {
  const property = node.type === 'Property' && node.shorthand;
  const children: NodePosition[] = [];
  for (const [key, value] of Object.entries(node)) {
    if (property && key === 'key') continue;
    const inheritsShorthand = property || (shorthand && node.type === 'AssignmentPattern' && key === 'left');
    for (const child of Array.isArray(value) ? value : [value]) {
      if (isNode(child)) children.push({ node: child, parent: node, key, shorthand: inheritsShorthand });
    }
  }
  return children;
}

function isNode(value: unknown): value is AnyNode {
  return (
    typeof value === 'object' && value !== null && 'type' in value && 'start' in value && typeof value.type === 'string'
  );
}

/** The strings of a list stand side by side, so they are replaced together. */
function addListTexts(
  elements: readonly (AnyNode | null)[],
  replacements: Map<string, string>,
  obfuscator: Obfuscator,
): void {
  const literals = elements.filter((element) => element?.type === 'Literal' && typeof element.value === 'string');
  const shown = obfuscator.texts(literals.map((literal) => (literal?.type === 'Literal' ? String(literal.value) : '')));
  for (const [index, literal] of literals.entries()) {
    if (literal !== null) replacements.set(`${literal.start}:${literal.end}`, JSON.stringify(shown[index]));
  }
}

function bytesOf(tokens: readonly Token[]): { textBytes: number; codeBytes: number } {
  const bytes = { textBytes: 0, codeBytes: 0 };
  for (const { type, start, end } of tokens) {
    bytes[/^(?:string|template|regexp)$/.test(type.label) ? 'textBytes' : 'codeBytes'] += end - start;
  }
  return bytes;
}

type NodeCounts = Omit<NormalizedSource['facts'], 'textBytes' | 'codeBytes' | 'globals' | 'droppedCommentCharacters'>;

function count(facts: NodeCounts, node: AnyNode): void {
  facts.nodes += 1;
  if (node.type.includes('Function')) facts.functions += 1;
  if (/^(For|While|DoWhile)/.test(node.type)) facts.loops += 1;
  if (node.type === 'AwaitExpression') facts.awaits += 1;
  if (node.type === 'MemberExpression' && node.computed && node.property.type !== 'Literal') facts.computedMembers += 1;
  if (node.type === 'Literal' && node.regex) facts.regularExpressions += 1;
}

function roleOf({ parent, key }: NodePosition): 'variable' | 'member' | 'label' | 'keep' {
  if (parent === undefined || parent.type === 'MetaProperty') return 'keep';
  if (key === 'label') return 'label';
  const named = parent.type === 'MemberExpression' ? key === 'property' : key === 'key';
  return named && 'computed' in parent && !parent.computed ? 'member' : 'variable';
}

function replacement(position: NodePosition, obfuscator: Obfuscator): string | undefined {
  const { node, parent } = position;
  if (node.type === 'Identifier') return identifier(position, node.name, obfuscator);
  if (node.type === 'PrivateIdentifier') return `#${obfuscator.name(node.name)}`;
  if (node.type === 'TemplateElement') return templateText(node.value, obfuscator);
  if (node.type !== 'Literal') return undefined;
  if (node.regex) return normalizeRegExp(node.regex.pattern, node.regex.flags, obfuscator);
  // Digits only: the other notations of a number contain letters.
  if (typeof node.bigint === 'string') return `${node.bigint}n`;
  if (typeof node.value === 'number') return String(node.value);
  if (typeof node.value !== 'string') return undefined;
  const key = roleOf(position) === 'member' && parent?.type !== 'MemberExpression';
  return JSON.stringify(key ? obfuscator.name(node.value) : obfuscator.text(node.value));
}

function identifier(position: NodePosition, name: string, obfuscator: Obfuscator): string {
  const role = roleOf(position);
  if (role === 'keep') return name;
  if (role === 'member') return obfuscator.name(name);
  const variable = WELL_KNOWN_GLOBALS.has(name) && role === 'variable' ? name : obfuscator.variable(name);
  return position.shorthand ? `${obfuscator.name(name)}: ${variable}` : variable;
}

/** A tagged template reads the text as written, so escapes make another text. */
function templateText(
  { raw, cooked }: { raw: string; cooked?: string | null | undefined },
  obfuscator: Obfuscator,
): string {
  const shown = raw === cooked ? obfuscator.text(raw) : obfuscator.hidden(raw);
  return /[`\\$]/.test(shown) ? obfuscator.hidden(raw) : shown;
}

/** Prints the tokens with normalized white space: a line break where the source has one, otherwise a single space. */
function printTokens(source: string, tokens: readonly Token[], replacements: ReadonlyMap<string, string>): string[] {
  let text = '';
  let depth = 0;
  let end = 0;
  for (const token of tokens) {
    const whitespace = source.slice(end, token.start);
    const raw = source.slice(token.start, token.end);
    if (raw === '}') depth = Math.max(0, depth - 1);
    if (text !== '' && whitespace !== '')
      text += /[\n\r\u2028\u2029]/.test(whitespace) ? `\n${'  '.repeat(Math.min(depth, 20))}` : ' ';
    text += replacements.get(`${token.start}:${token.end}`) ?? raw;
    if (raw === '{' || raw === '${') depth += 1;
    end = token.end;
  }
  return text.split('\n');
}
