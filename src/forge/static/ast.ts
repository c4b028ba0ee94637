import type { AnyNode, Node } from 'acorn';

/** The child nodes of any node type, in the order of the node's keys. */
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
 * The nesting depth of a tree as a reader sees it: chains on the same level (`a + b + c`, `a.b().c()`, `else if`) count once.
 * Not recursive, because the untrusted tree may be deep. Stops at `limit` + 1.
 */
export function nestingOf(root: Node, limit: number): number {
  let deepest = 0;
  const stack: [node: Node, depth: number][] = [[root, 1]];
  for (let entry = stack.pop(); entry !== undefined; entry = stack.pop()) {
    const [node, depth] = entry;
    deepest = Math.max(deepest, depth);
    if (deepest > limit) return deepest;
    const chained = chainedChild(node);
    for (const child of childrenOf(node)) stack.push([child, child === chained ? depth : depth + 1]);
  }
  return deepest;
}

/** For each kind of chain, the child that continues it on the same level. */
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
