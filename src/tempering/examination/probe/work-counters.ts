import type { AnyNode } from 'acorn';
import { childrenOf } from '../../../forge/static/ast.ts';
import { parseSource } from '../../../forge/static/parse.ts';
import { SPREAD, WORK } from './probe-source.ts';

interface Insertion {
  at: number;
  text: string;
  /** Insertions at one place keep this order. */
  rank: number;
}

/**
 * The source with a counter in each loop body and each function, and around each spread, so that its work can be measured without
 * a clock. Undefined for a source that does not parse.
 */
export function withWorkCounters(source: string): string | undefined {
  const { program } = parseSource(source);
  if (program === undefined) return undefined;
  const insertions: Insertion[] = [];
  const stack: AnyNode[] = [program];
  for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
    insertions.push(...insertionsOf(node));
    stack.push(...childrenOf(node));
  }
  insertions.sort((first, second) => second.at - first.at || second.rank - first.rank);
  let text = source;
  for (const { at, text: inserted } of insertions) text = `${text.slice(0, at)}${inserted}${text.slice(at)}`;
  return text;
}

const COUNT = `${WORK}();`;

function insertionsOf(node: AnyNode): Insertion[] {
  switch (node.type) {
    case 'ForStatement':
    case 'ForInStatement':
    case 'ForOfStatement':
    case 'WhileStatement':
    case 'DoWhileStatement':
      return countIn(node.body);
    case 'FunctionDeclaration':
    case 'FunctionExpression':
      return countIn(node.body);
    case 'ArrowFunctionExpression':
      return node.body.type === 'BlockStatement' ? countIn(node.body) : countBefore(node.body);
    case 'SpreadElement':
      return [
        { at: node.argument.start, text: `${SPREAD}(`, rank: 2 },
        { at: node.argument.end, text: ')', rank: 0 },
      ];
    default:
      return [];
  }
}

function countIn(body: AnyNode): Insertion[] {
  if (body.type === 'BlockStatement') return [{ at: firstStatement(body), text: COUNT, rank: 1 }];
  return [
    { at: body.start, text: `{${COUNT}`, rank: 1 },
    { at: body.end, text: '}', rank: 0 },
  ];
}

/** After the directives of a function, which only count at its beginning. */
function firstStatement(body: Extract<AnyNode, { type: 'BlockStatement' }>): number {
  const directives = body.body.filter(
    (statement) => statement.type === 'ExpressionStatement' && 'directive' in statement,
  );
  return directives.at(-1)?.end ?? body.start + 1;
}

/** The body of an arrow function may be in parentheses, of which the tree does not know; a comma would end up inside of them. */
function countBefore(body: AnyNode): Insertion[] {
  return [
    { at: body.start, text: `(${WORK}(),`, rank: 1 },
    { at: body.end, text: ')', rank: 0 },
  ];
}
