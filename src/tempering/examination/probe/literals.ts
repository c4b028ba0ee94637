import type { AnyNode, Program } from 'acorn';
import { childrenOf } from '../../../forge/static/ast.ts';

/** A value that stands in the source of a tool. */
export interface SourceLiteral {
  value: string | number;
  start: number;
  end: number;
  /** The keys of the table in which it stands; undefined outside of a table. */
  table?: readonly (string | number)[];
  /** A member name without quotes. */
  isBareKey: boolean;
}

const MAX_LITERALS = 400;

/** The texts and numbers of a program that are long enough to say something, each with the table around it. */
export function literalsOf(program: Program): SourceLiteral[] {
  const found: SourceLiteral[] = [];
  const stack: [node: AnyNode, table: SourceLiteral['table']][] = [[program, undefined]];
  for (let entry = stack.pop(); entry !== undefined && found.length < MAX_LITERALS; entry = stack.pop()) {
    const [node, outer] = entry;
    const table = tableKeys(node) ?? outer;
    const literal = literalOf(node, table);
    if (literal !== undefined) found.push(literal);
    for (const child of childrenOf(node)) stack.push([child, table]);
  }
  return found;
}

function literalOf(node: AnyNode, table: SourceLiteral['table']): SourceLiteral | undefined {
  const place = { start: node.start, end: node.end, ...(table === undefined ? {} : { table }) };
  if (node.type === 'Property' && !node.computed && !node.shorthand && node.key.type === 'Identifier') {
    const { name, start, end } = node.key;
    return isTelling(name) ? { ...place, start, end, value: name, isBareKey: true } : undefined;
  }
  const value = valueOf(node);
  return value !== undefined && isTelling(value) ? { ...place, value, isBareKey: false } : undefined;
}

/** Small numbers, single characters and empty texts occur in every tool. */
function isTelling(value: string | number): boolean {
  return typeof value === 'number' ? Math.abs(value) > 2 || !Number.isInteger(value) : value.length > 1;
}

function valueOf(node: AnyNode): string | number | undefined {
  if (node.type === 'Literal') {
    return typeof node.value === 'string' || typeof node.value === 'number' ? node.value : undefined;
  }
  if (node.type !== 'TemplateLiteral' || node.expressions.length > 0) return undefined;
  return node.quasis[0]?.value.cooked ?? undefined;
}

/** The keys of an object, of a list of pairs, or of the cases of a switch. */
function tableKeys(node: AnyNode): (string | number)[] | undefined {
  if (node.type === 'ObjectExpression' && node.properties.length > 0) {
    return node.properties.flatMap((property) => (property.type === 'Property' ? keyOf(property.key) : []));
  }
  if (node.type === 'SwitchStatement') return node.cases.flatMap(({ test }) => (test ? keyOf(test) : []));
  if (node.type !== 'ArrayExpression') return undefined;
  const rows = node.elements.filter((element) => element !== null);
  if (rows.length === 0 || !rows.every((row) => row.type === 'ArrayExpression')) return undefined;
  return rows.flatMap((row) => {
    const [first] = row.elements;
    return first ? keyOf(first as AnyNode) : [];
  });
}

function keyOf(node: AnyNode): (string | number)[] {
  if (node.type === 'Identifier') return [node.name];
  const value = valueOf(node);
  return value === undefined ? [] : [value];
}
