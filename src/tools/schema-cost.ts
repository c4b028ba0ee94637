import type { SchemaNode, SchemaTree, SchemaViolation } from './schema-tree.ts';

/** Deeper values are refused before they are validated. */
export const MAXIMUM_VALUE_DEPTH = 200;

/** Growth shows within this many levels: what doubles at each is far beyond the limit by then. */
const LEVELS = 24;

/** How often one member of a value may be looked at, weighted by the work of each look. */
const MAXIMUM_WORK_PER_PLACE = 5_000;

export interface SchemaCost {
  /** Bound on the weighted visits of any single place in a value. */
  workPerPlace: number;
  violations: SchemaViolation[];
}

/**
 * Bounds the work of validating: references are followed, so a small schema that fans out is seen for what it is.
 * A schema that refers to itself without going down into the value would never end and is a violation.
 */
export function costOf(tree: SchemaTree): SchemaCost {
  const violations: SchemaViolation[] = [];
  const targets = new Map<SchemaNode, SchemaNode>();
  for (const node of tree.byPointer.values()) {
    if (node.reference === undefined) continue;
    const target = resolve(tree, node.reference);
    if (target === undefined) {
      violations.push({
        problem: 'invalid',
        path: node.path,
        message: `$ref ${JSON.stringify(node.reference.slice(0, 80))} leads to no schema`,
      });
    } else targets.set(node, target);
  }
  const inPlaceOf = (node: SchemaNode): SchemaNode[] => {
    const target = targets.get(node);
    return target === undefined ? node.inPlace : [...node.inPlace, target];
  };
  const endless = findCycle([...tree.byPointer.values()], inPlaceOf);
  if (endless !== undefined) {
    violations.push({
      problem: 'unsafe',
      path: endless.path,
      message: 'the schema refers to itself without going into a member or an item; it would never end',
    });
  }
  if (violations.length > 0) return { workPerPlace: 0, violations };
  const workPerPlace = mostWork(tree.root, inPlaceOf);
  if (workPerPlace > MAXIMUM_WORK_PER_PLACE) {
    violations.push({
      problem: 'unsafe',
      path: tree.root.path,
      message: 'references and combinations multiply beyond what can be validated; combine fewer schemas',
    });
  }
  return { workPerPlace, violations };
}

function resolve(tree: SchemaTree, reference: string): SchemaNode | undefined {
  try {
    return tree.byPointer.get(decodeURIComponent(reference.slice(1)));
  } catch (error) {
    if (error instanceof URIError) return undefined;
    throw error;
  }
}

/** Any node on a cycle of in-place edges, found without recursion: nodes with no unfinished successor are taken away until none is left. */
function findCycle(nodes: SchemaNode[], inPlaceOf: (node: SchemaNode) => SchemaNode[]): SchemaNode | undefined {
  const waiting = new Map<SchemaNode, number>();
  const neededBy = new Map<SchemaNode, SchemaNode[]>();
  for (const node of nodes) {
    const successors = inPlaceOf(node);
    waiting.set(node, successors.length);
    for (const successor of successors) neededBy.set(successor, [...(neededBy.get(successor) ?? []), node]);
  }
  const free = nodes.filter((node) => waiting.get(node) === 0);
  for (let node = free.pop(); node !== undefined; node = free.pop()) {
    waiting.delete(node);
    for (const user of neededBy.get(node) ?? []) {
      const left = (waiting.get(user) ?? 0) - 1;
      waiting.set(user, left);
      if (left === 0) free.push(user);
    }
  }
  return waiting.keys().next().value;
}

/**
 * The largest weighted number of visits of one place, over all depths. Requires that no in-place cycle exists.
 * A place is a member or an item, never both, so of the two sums the larger counts.
 */
function mostWork(root: SchemaNode, inPlaceOf: (node: SchemaNode) => SchemaNode[]): number {
  const bounded = (work: number): number => Math.min(work, MAXIMUM_WORK_PER_PLACE + 1);
  const sum = (nodes: readonly SchemaNode[], work: (node: SchemaNode) => number): number =>
    bounded(nodes.reduce((total, node) => total + work(node), 0));

  const here = memoised((node) => bounded(node.weight + sum(inPlaceOf(node), (other) => here(other, 0))));
  const below = memoised((node, depth) =>
    depth === 0 ? here(node, 0) : Math.max(asItem(node, depth), asMember(node, depth)),
  );
  const asItem = memoised((node, depth) =>
    bounded(
      sum(node.items, (child) => below(child, depth - 1)) + sum(inPlaceOf(node), (other) => asItem(other, depth)),
    ),
  );
  const asMember = memoised((node, depth) =>
    bounded(
      Math.max(0, ...node.properties.map((child) => below(child, depth - 1))) +
        sum(node.members, (child) => below(child, depth - 1)) +
        sum(inPlaceOf(node), (other) => asMember(other, depth)),
    ),
  );
  let most = 0;
  for (let depth = 0; depth < LEVELS && most <= MAXIMUM_WORK_PER_PLACE; depth += 1) {
    most = Math.max(most, below(root, depth));
  }
  return most;
}

type Work = (node: SchemaNode, depth: number) => number;

function memoised(work: Work): Work {
  const known = new Map<SchemaNode, number[]>();
  return (node, depth) => {
    const memo = known.get(node) ?? [];
    known.set(node, memo);
    return (memo[depth] ??= work(node, depth));
  };
}
