import { isJsonObject, type Json, type JsonObject } from '../../../lib/json.ts';
import { printable } from '../../../lib/printable.ts';
import { checkResult, unfinishedCheck } from '../check-result.ts';
import { nodesOf, replaceAt } from '../inputs/nodes.ts';
import type { CheckResult, Disagreement } from '../types.ts';
import { MAX_WORK, type ProbeCall } from './probe-source.ts';
import type { ProbeResult } from './run-probe.ts';

const SIZES = [64, 128, 256, 512, 1_024];
const MAX_NODES = 12;
const MAX_COLLECTIONS = 3;
/** Doubling the input doubles linear work and quadruples quadratic work; sorting stays far below. */
const QUADRATIC_RATIO = 3.3;

export interface GrowthPlan {
  collections: { name: string; inputs: number[] }[];
  inputs: Json[];
  calls: ProbeCall[];
}

/** Inputs whose lists and texts double in length. */
export function planGrowth(bases: readonly JsonObject[], isValid: (input: Json) => boolean): GrowthPlan {
  const plan: GrowthPlan = { collections: [], inputs: [], calls: [] };
  const seen = new Set<string>();
  for (const base of bases) {
    for (const { path, value } of nodesOf(base, MAX_NODES)) {
      const name = path.join('.');
      if (seen.has(name) || plan.collections.length >= MAX_COLLECTIONS || !isLongable(value)) continue;
      const grown = SIZES.map((size) => replaceAt(base, path, grow(value, size)));
      if (!grown.every(isValid)) continue;
      seen.add(name);
      const first = plan.inputs.length;
      plan.collections.push({ name, inputs: grown.map((_, index) => first + index) });
      plan.inputs.push(...grown);
      plan.calls.push(...grown.map((_, index): ProbeCall => [0, first + index, 0]));
    }
  }
  return plan;
}

function isLongable(value: Json): value is string | Json[] {
  return (typeof value === 'string' || Array.isArray(value)) && value.length > 0;
}

/** Distinct items where possible, because equal ones may end a search at once. */
function grow(value: string | Json[], size: number): Json {
  if (typeof value === 'string') {
    return value.repeat(Math.ceil(size / value.length)).slice(0, size);
  }
  return Array.from({ length: size }, (_, index) => differentItem(value[index % value.length] ?? null, index));
}

function differentItem(item: Json, index: number): Json {
  if (typeof item === 'number') return Number.isInteger(item) ? index * 3 + (item % 3) : index * 3 + 0.5;
  if (typeof item === 'string') return `${item}${index}`;
  if (Array.isArray(item)) return item.map((inner) => differentItem(inner, index));
  if (!isJsonObject(item)) return item;
  return Object.fromEntries(Object.entries(item).map(([name, inner]) => [name, differentItem(inner, index)]));
}

export function judgeGrowth(
  plan: GrowthPlan,
  probed: { results: readonly ProbeResult[] } | { problem: string },
): CheckResult {
  if ('problem' in probed) return unfinishedCheck('growth', probed.problem);
  const disagreements = plan.collections.flatMap(({ name, inputs }): Disagreement[] => {
    const work = inputs.map((index) => probed.results[index]?.work ?? 0);
    if (!growsQuadratically(work)) return [];
    const reason = 'the work grows at least with the square of the length of a list or text of the input';
    return [
      {
        input: printable(`"${name}" with the lengths ${SIZES.join(', ')}`, 200),
        got: `counted steps ${work.join(', ')}`,
        reason,
      },
    ];
  });
  return checkResult('growth', 'Ask', plan.calls.length, disagreements);
}

/** A call that reaches the limit of work has at least that much, so the size before it decides. */
function growsQuadratically(work: readonly number[]): boolean {
  const limited = work.findIndex((count) => count >= MAX_WORK);
  if (limited !== -1 && (limited === 0 || (work[limited - 1] ?? 0) * QUADRATIC_RATIO <= MAX_WORK)) return true;
  const [before = 0, middle = 0, last = 0] = (limited === -1 ? work : work.slice(0, limited)).slice(-3);
  return last > 100_000 && before > 0 && middle / before >= QUADRATIC_RATIO && last / middle >= QUADRATIC_RATIO;
}
