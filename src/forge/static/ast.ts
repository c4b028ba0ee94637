import type { AnyNode, Node } from 'acorn';

/** Child nodes in source order of their keys; works for every node type. */
export function childrenOf(node: Node): AnyNode[] {
  const children: AnyNode[] = [];
  for (const value of Object.values(node)) {
    if (Array.isArray(value)) {
      for (const item of value) if (isNode(item)) children.push(item);
    } else if (isNode(value)) children.push(value);
  }
  return children;
}

function isNode(value: unknown): value is AnyNode {
  return typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string';
}

/**
 * Nesting of a tree as a reader sees it: chains that run on the same level (`a + b + c`, `a.b().c()`, `else if`) count once.
 * Without recursion, since the tree is hostile.
 */
export function nestingOf(root: Node, limit: number): number {
  let deepest = 0;
  const left: [node: Node, depth: number][] = [[root, 1]];
  for (let entry = left.pop(); entry !== undefined; entry = left.pop()) {
    const [node, depth] = entry;
    deepest = Math.max(deepest, depth);
    if (deepest > limit) return deepest;
    const chained = chainedChild(node);
    for (const child of childrenOf(node)) left.push([child, child === chained ? depth : depth + 1]);
  }
  return deepest;
}

/** For each kind of chain, the child that goes on on the same level. */
const CHAINS: ReadonlyMap<string, string> = new Map([
  ['BinaryExpression', 'left'],
  ['LogicalExpression', 'left'],
  ['MemberExpression', 'object'],
  ['CallExpression', 'callee'],
  ['ChainExpression', 'expression'],
  ['ExpressionStatement', 'expression'],
  ['IfStatement', 'alternate'],
  ['ConditionalExpression', 'alternate'],
]);

function chainedChild(node: Node): unknown {
  const key = CHAINS.get(node.type);
  return key === undefined ? undefined : (node as unknown as Record<string, unknown>)[key];
}
