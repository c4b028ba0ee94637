import { differenceFrom } from '../../../forge/test-runs/compare-json.ts';
import { isJsonObject, type Json } from '../../../lib/json.ts';
import { nodesOf, replaceAt, scalarsOf } from '../inputs/nodes.ts';
import type { Relation, RelationSources } from './relation.ts';

const MAX_INPUTS = 6;
const MAX_NODES = 60;
const MAX_SCALARS = 50;

/** A tool that claims a result over a collection gives the same result when the only collection has another order. */
export function orderRelations({ claims, plan, random, isValid }: RelationSources): Relation[] {
  if (!claims.some(({ claim }) => claim === 'order-independent')) return [];
  return [...plan.bases, ...plan.neighbours].slice(0, MAX_INPUTS).flatMap((base): Relation[] => {
    const lists = nodesOf(base, MAX_NODES).filter(({ value }) => Array.isArray(value) && value.length > 1);
    const [list] = lists;
    if (list === undefined || lists.length > 1) return [];
    const items = list.value as Json[];
    return [items.toReversed(), random.shuffled(items)].flatMap((permuted): Relation[] => {
      const other = replaceAt(base, list.path, permuted);
      if (!isJsonObject(other) || !isValid(other)) return [];
      const reason = 'the order of the items changes the output';
      return [{ check: 'order-independence', base, other, reason, isTotal: true, holds: sameSummary }];
    });
  });
}

/** Lists of scalars are compared as multisets. An output with texts may name one of several equal items, so it decides nothing. */
function sameSummary(first: Json, second: Json): boolean {
  if (scalarsOf([first, second], MAX_SCALARS).some((value) => typeof value === 'string')) return true;
  return differenceFrom(sortedLists(first), sortedLists(second)) === undefined;
}

function sortedLists(value: Json): Json {
  if (Array.isArray(value))
    return value.map(sortedLists).toSorted((a, b) => compareText(JSON.stringify(a), JSON.stringify(b)));
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, sortedLists(item)]));
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
