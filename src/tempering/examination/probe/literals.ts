import type { AnyNode, Program } from 'acorn';
import { childrenOf } from '../../../forge/static/ast.ts';

/** The keys of something that maps values to results. */
export type TableKeys = readonly (string | number)[];

/** A value that stands in the source of a tool. */
export interface SourceLiteral {
  value: string | number;
  start: number;
  end: number;
  /** The tables in which it stands, from the outermost one. */
  tables: readonly TableKeys[];
  /** A member name without quotes. */
  isBareKey: boolean;
}

const MAX_LITERALS = 400;

/** The texts and numbers of a program that are long enough to say something, each with the tables around it. */
export function literalsOf(program: Program, source: string): SourceLiteral[] {
  const comparisons = comparedLiterals(program, source);
  const found: SourceLiteral[] = [];
  const stack: [node: AnyNode, tables: readonly TableKeys[]][] = [[program, []]];
  for (let entry = stack.pop(); entry !== undefined && found.length < MAX_LITERALS; entry = stack.pop()) {
    const [node, outer] = entry;
    const keys = [tableKeys(node), chainKeys(node, source, comparisons)].filter((table) => table !== undefined);
    const tables = keys.length === 0 ? outer : [...outer, ...keys];
    const literal = literalOf(node, tables);
    if (literal !== undefined) found.push(literal);
    for (const child of childrenOf(node)) stack.push([child, tables]);
  }
  return found;
}

function literalOf(node: AnyNode, tables: readonly TableKeys[]): SourceLiteral | undefined {
  if (node.type === 'Property' && !node.computed && !node.shorthand && node.key.type === 'Identifier') {
    const { name, start, end } = node.key;
    return isTelling(name) ? { start, end, tables, value: name, isBareKey: true } : undefined;
  }
  const value = valueOf(node);
  if (value === undefined || !isTelling(value)) return undefined;
  return { start: node.start, end: node.end, tables, value, isBareKey: false };
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

/** The keys of an object, the cases of a switch, the first items of a list of pairs, the items of a list. */
function tableKeys(node: AnyNode): TableKeys | undefined {
  if (node.type === 'ObjectExpression' && node.properties.length > 0) {
    return node.properties.flatMap((property) => (property.type === 'Property' ? keyOf(property.key) : []));
  }
  if (node.type === 'SwitchStatement') return node.cases.flatMap(({ test }) => (test ? keyOf(test) : []));
  if (node.type !== 'ArrayExpression') return undefined;
  const items = node.elements.filter((element) => element !== null);
  return items.flatMap((item) => {
    const first = item.type === 'ArrayExpression' ? item.elements[0] : item;
    return first ? keyOf(first) : [];
  });
}

function keyOf(node: AnyNode): (string | number)[] {
  if (node.type === 'Identifier') return [node.name];
  const value = valueOf(node);
  return value === undefined ? [] : [value];
}

/** The literals with which each expression of the program is compared: a chain of comparisons is a table as well. */
function comparedLiterals(program: Program, source: string): Map<string, (string | number)[]> {
  const compared = new Map<string, (string | number)[]>();
  const stack: AnyNode[] = [program];
  for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
    const comparison = comparisonOf(node, source);
    if (comparison !== undefined) {
      const { subject, value } = comparison;
      compared.set(subject, [...(compared.get(subject) ?? []), value]);
    }
    stack.push(...childrenOf(node));
  }
  return compared;
}

function comparisonOf(node: AnyNode, source: string): { subject: string; value: string | number } | undefined {
  if (node.type !== 'BinaryExpression' || !['===', '=='].includes(node.operator)) return undefined;
  const [left, right] = [valueOf(node.left), valueOf(node.right)];
  const value = right ?? left;
  const other = right === undefined ? node.right : node.left;
  return value === undefined ? undefined : { subject: source.slice(other.start, other.end), value };
}

function chainKeys(node: AnyNode, source: string, compared: ReadonlyMap<string, TableKeys>): TableKeys | undefined {
  if (node.type !== 'IfStatement' && node.type !== 'ConditionalExpression') return undefined;
  const comparison = comparisonOf(node.test, source);
  return comparison === undefined ? undefined : compared.get(comparison.subject);
}
