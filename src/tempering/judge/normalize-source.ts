import { type AnyNode, parse, type Token } from 'acorn';
import { isLanguageWord, isValueMember, WELL_KNOWN_GLOBALS } from './well-known-names.ts';
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
  parent: NodePosition | undefined;
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
  const ownMethods = methodsOfTheAuthor(program);
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
    const text = replacement(position, obfuscator, ownMethods);
    const place = `${position.node.start}:${position.node.end}`;
    if (text !== undefined && !replacements.has(place)) replacements.set(place, text);
    if (position.node.type === 'ArrayExpression') addListTexts(position.node.elements, replacements, obfuscator);
    pending.push(...childrenOf(position));
  }
  const lines = printTokens(source, tokens, replacements);
  return { lines, facts: { ...facts, ...bytesOf(tokens), globals: [...globals].sort(), droppedCommentCharacters } };
}

function childrenOf(position: NodePosition): NodePosition[] {
  const { node, shorthand } = position;
  const property = node.type === 'Property' && node.shorthand;
  const children: NodePosition[] = [];
  for (const [key, value] of Object.entries(node)) {
    if (property && key === 'key') continue;
    const inheritsShorthand = property || (shorthand && node.type === 'AssignmentPattern' && key === 'left');
    for (const child of Array.isArray(value) ? value : [value]) {
      if (isNode(child)) children.push({ node: child, parent: position, key, shorthand: inheritsShorthand });
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

function roleOf({ parent: outer, key }: NodePosition): 'variable' | 'member' | 'label' | 'keep' {
  const parent = outer?.node;
  if (parent === undefined || parent.type === 'MetaProperty') return 'keep';
  if (key === 'label') return 'label';
  const named = parent.type === 'MemberExpression' ? key === 'property' : key === 'key';
  return named && 'computed' in parent && !parent.computed ? 'member' : 'variable';
}

function replacement(
  position: NodePosition,
  obfuscator: Obfuscator,
  ownMethods: ReadonlySet<string>,
): string | undefined {
  const { node, parent } = position;
  if (node.type === 'Identifier') return identifier(position, node.name, obfuscator, ownMethods);
  if (node.type === 'PrivateIdentifier') return `#${obfuscator.name(node.name)}`;
  if (node.type === 'TemplateElement') return templateText(node.value, obfuscator);
  if (node.type !== 'Literal') return undefined;
  if (node.regex) return normalizeRegExp(node.regex.pattern, node.regex.flags, obfuscator);
  // Digits only: the other notations of a number contain letters.
  if (typeof node.bigint === 'string') return `${node.bigint}n`;
  if (typeof node.value === 'number') return String(node.value);
  if (typeof node.value !== 'string') return undefined;
  const key = roleOf(position) === 'member' && parent?.node.type !== 'MemberExpression';
  return JSON.stringify(key ? obfuscator.name(node.value) : obfuscator.text(node.value));
}

function identifier(
  position: NodePosition,
  name: string,
  obfuscator: Obfuscator,
  ownMethods: ReadonlySet<string>,
): string {
  const role = roleOf(position);
  if (role === 'keep') return name;
  if (role === 'member') return isUseOfLanguage(position, name, ownMethods) ? name : obfuscator.name(name);
  const variable = WELL_KNOWN_GLOBALS.has(name) && role === 'variable' ? name : obfuscator.variable(name);
  if (!position.shorthand) return variable;
  return `${isTakenFromGlobal(position) ? name : obfuscator.name(name)}: ${variable}`;
}

/** Whether code uses a word of the language as such: it calls a method, or the word belongs to a global object or a prototype. */
function isUseOfLanguage(position: NodePosition, name: string, ownMethods: ReadonlySet<string>): boolean {
  if (!isLanguageWord(name)) return false;
  const { parent } = position;
  if (parent?.node.type !== 'MemberExpression') return isTakenFromGlobal(position);
  if (isGlobal(parent.node.object) || isPrototype(parent.node.object)) return true;
  return isValueMember(name) && !ownMethods.has(name) && isCalled(parent);
}

/** `value.name()`, and `value.name.call()` with its two relatives. */
function isCalled({ parent, key }: NodePosition): boolean {
  if (key === 'callee' || key === 'tag') return true;
  const member = parent?.node;
  if (member?.type !== 'MemberExpression' || key !== 'object' || member.property.type !== 'Identifier') return false;
  return parent?.key === 'callee' && ['apply', 'bind', 'call'].includes(member.property.name);
}

/** The name in `const { floor } = Math`. */
function isTakenFromGlobal({ parent: property }: NodePosition): boolean {
  const own = property?.node.type === 'AssignmentPattern' ? property.parent : property;
  const declarator = own?.parent?.node.type === 'ObjectPattern' ? own.parent.parent?.node : undefined;
  return declarator?.type === 'VariableDeclarator' && isGlobal(declarator.init);
}

function isGlobal(node: AnyNode | null | undefined): boolean {
  return (
    node?.type === 'Identifier' &&
    WELL_KNOWN_GLOBALS.has(node.name) &&
    /^[A-Z]|^(?:console|crypto|fs|performance)$/.test(node.name)
  );
}

function isPrototype(node: AnyNode): boolean {
  return node.type === 'MemberExpression' && node.property.type === 'Identifier' && node.property.name === 'prototype';
}

/** Names of the functions that the author keeps in objects and classes. They are no methods of the language, whatever their names are. */
function methodsOfTheAuthor(program: AnyNode): Set<string> {
  const names = new Set<string>();
  const pending: NodePosition[] = [{ node: program, parent: undefined, key: '', shorthand: false }];
  for (let position = pending.pop(); position !== undefined; position = pending.pop()) {
    const { node } = position;
    const isKeyed = node.type === 'Property' || node.type === 'MethodDefinition' || node.type === 'PropertyDefinition';
    if (isKeyed && node.key.type === 'Identifier' && node.value?.type.includes('Function')) names.add(node.key.name);
    pending.push(...childrenOf(position));
  }
  return names;
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
