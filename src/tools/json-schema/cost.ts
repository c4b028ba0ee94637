import type { SchemaNode, SchemaTree, SchemaViolation } from './tree.ts';

/** Values with this nesting depth or more are refused before their validation. */
export const MAX_VALUE_DEPTH = 200;

/** Number of levels to examine: work that doubles at each level is far beyond the limit by then. */
const MAX_LEVELS = 24;

/** Limit of the visits of one location in a value, weighted by the work of each visit. */
const MAX_WORK_PER_LOCATION = 5_000;

/**
 * The violations of a schema whose validation would be too much work, by an upper bound of the visits of one location; the
 * work on a whole value is counted while it is done. The bound follows references, so it also finds a small schema that fans out.
 * A schema that refers to itself without descending into the value would never end and is a violation.
 */
export function costOf(tree: SchemaTree): SchemaViolation[] {
  const violations: SchemaViolation[] = [];
  const targets = new Map<SchemaNode, SchemaNode>();
  for (const node of tree.byPointer.values()) {
    if (node.reference === undefined) continue;
    const target = resolve(tree, node.reference);
    if (target === undefined) {
      violations.push({
        problem: 'invalid',
        path: node.path,
        message: `$ref ${JSON.stringify(node.reference.slice(0, 80))} does not lead to a schema`,
      });
    } else targets.set(node, target);
  }
  const inPlaceOf = (node: SchemaNode): SchemaNode[] => {
    const target = targets.get(node);
    return target === undefined ? node.inPlace : [...node.inPlace, target];
  };
  const cyclic = findCycle([...tree.byPointer.values()], inPlaceOf);
  if (cyclic !== undefined) {
    violations.push({
      problem: 'unsafe',
      path: cyclic.path,
      message:
        'the schema refers to itself without descending into a member or an item; its validation would never end',
    });
  }
  if (violations.length > 0) return violations;
  const workPerPlace = maxWork(tree.root, inPlaceOf);
  if (workPerPlace > MAX_WORK_PER_LOCATION) {
    violations.push({
      problem: 'unsafe',
      path: tree.root.path,
      message: 'references and combinations multiply beyond what can be validated; combine fewer schemas',
    });
  }
  return violations;
}

function resolve(tree: SchemaTree, reference: string): SchemaNode | undefined {
  try {
    return tree.byPointer.get(decodeURIComponent(reference.slice(1)));
  } catch (error) {
    if (error instanceof URIError) return undefined;
    throw error;
  }
}

/** A node on a cycle of in-place edges. Not recursive: removes nodes without unfinished successors until only cycles are left. */
function findCycle(nodes: SchemaNode[], inPlaceOf: (node: SchemaNode) => SchemaNode[]): SchemaNode | undefined {
  const unfinished = new Map<SchemaNode, number>();
  const neededBy = new Map<SchemaNode, SchemaNode[]>();
  for (const node of nodes) {
    const successors = inPlaceOf(node);
    unfinished.set(node, successors.length);
    for (const successor of successors) neededBy.set(successor, [...(neededBy.get(successor) ?? []), node]);
  }
  const free = nodes.filter((node) => unfinished.get(node) === 0);
  for (let node = free.pop(); node !== undefined; node = free.pop()) {
    unfinished.delete(node);
    for (const user of neededBy.get(node) ?? []) {
      const left = (unfinished.get(user) ?? 0) - 1;
      unfinished.set(user, left);
      if (left === 0) free.push(user);
    }
  }
  return unfinished.keys().next().value;
}

/**
 * The largest weighted number of visits of one location, over all depths. Requires that no in-place cycle exists.
 * A location is either a member or an item, so the larger of the two sums counts.
 */
function maxWork(root: SchemaNode, inPlaceOf: (node: SchemaNode) => SchemaNode[]): number {
  const bounded = (work: number): number => Math.min(work, MAX_WORK_PER_LOCATION + 1);
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
  let max = 0;
  for (let depth = 0; depth < MAX_LEVELS && max <= MAX_WORK_PER_LOCATION; depth += 1) {
    max = Math.max(max, below(root, depth));
  }
  return max;
}

type WorkFunction = (node: SchemaNode, depth: number) => number;

function memoised(work: WorkFunction): WorkFunction {
  const known = new Map<SchemaNode, number[]>();
  return (node, depth) => {
    const memo = known.get(node) ?? [];
    known.set(node, memo);
    return (memo[depth] ??= work(node, depth));
  };
}
