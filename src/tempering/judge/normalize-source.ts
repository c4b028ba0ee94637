import { type AnyNode, parse, type Token } from 'acorn';
import { WELL_KNOWN_GLOBALS, WELL_KNOWN_MEMBERS } from './well-known-names.ts';
import { isPlainText, type Obfuscator } from './obfuscation.ts';

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
 * Prints tokens only, which drops comments and unusual white space. Names chosen by the author become placeholders, long strings base64.
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
    if (text !== undefined) replacements.set(`${position.node.start}:${position.node.end}`, text);
    pending.push(...childrenOf(position));
  }
  const lines = printTokens(source, tokens, replacements);
  return { lines, facts: { ...facts, globals: [...globals].sort(), droppedCommentCharacters } };
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

function count(facts: Omit<NormalizedSource['facts'], 'globals' | 'droppedCommentCharacters'>, node: AnyNode): void {
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
  if (node.type === 'TemplateElement')
    return obfuscator.text(node.value.cooked ?? node.value.raw).replaceAll(/[`\\$]/g, '_');
  if (node.type !== 'Literal') return undefined;
  if (node.regex) return regularExpression(node.regex.pattern, node.regex.flags, obfuscator);
  if (typeof node.value !== 'string') return undefined;
  const key = roleOf(position) === 'member' && parent?.type !== 'MemberExpression';
  return JSON.stringify(key ? memberName(node.value, obfuscator) : literal(node.value, obfuscator));
}

function identifier(position: NodePosition, name: string, obfuscator: Obfuscator): string {
  const role = roleOf(position);
  if (role === 'keep') return name;
  if (role === 'member') return memberName(name, obfuscator);
  const variable = WELL_KNOWN_GLOBALS.has(name) && role === 'variable' ? name : obfuscator.variable(name);
  return position.shorthand ? `${memberName(name, obfuscator)}: ${variable}` : variable;
}

function memberName(name: string, obfuscator: Obfuscator): string {
  return WELL_KNOWN_MEMBERS.has(name) ? name : obfuscator.name(name);
}

function literal(value: string, obfuscator: Obfuscator): string {
  return WELL_KNOWN_MEMBERS.has(value) || WELL_KNOWN_GLOBALS.has(value) ? value : obfuscator.text(value);
}

function regularExpression(pattern: string, flags: string, obfuscator: Obfuscator): string {
  return isPlainText(pattern, 48)
    ? `/${pattern}/${flags}`
    : `/${obfuscator.text(pattern).replaceAll('/', '_')}/${flags}`;
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
