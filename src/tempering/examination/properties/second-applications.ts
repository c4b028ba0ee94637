import { differenceFrom } from '../../../forge/test-runs/compare-json.ts';
import { isJsonObject, type Json, type JsonObject } from '../../../lib/json.ts';
import type { InputRuns } from '../input-runs.ts';
import { directionOf, onlyMember } from './claims.ts';
import type { Relation, RelationSources } from './relation.ts';

const MAX_INPUTS = 8;
const TYPES = ['string', 'array', 'number', 'integer'];

/** Relations whose second input contains the output for the first one: idempotence, and a way there and back. */
export function secondApplications(sources: RelationSources, runs: InputRuns): Relation[] {
  const { claims, isValid } = sources;
  const output = onlyMember(sources.open.outputSchema, TYPES);
  if (output === undefined) return [];
  const claimed = new Set(claims.map(({ claim }) => claim));
  return [
    ...(claimed.has('idempotent') ? idempotence(sources, runs, output) : []),
    ...(claimed.has('invertible') ? inversion(sources, runs, output) : []),
  ].filter(({ other }) => isValid(other));
}

function idempotence({ open, plan }: RelationSources, runs: InputRuns, output: string): Relation[] {
  return [...plan.bases, ...plan.neighbours].slice(0, MAX_INPUTS).flatMap((base): Relation[] => {
    const result = resultOf(runs.outputOf(base), output);
    const input = primaryMember(open.inputSchema, base, result);
    if (result === undefined || input === undefined) return [];
    const reason = 'the tool changes its own output when it gets it as input';
    const other = { ...base, [input]: result };
    return [
      { check: 'idempotence', base, other, reason, isTotal: true, holds: (first, second) => isSame(first, second) },
    ];
  });
}

function inversion({ open, plan }: RelationSources, runs: InputRuns, output: string): Relation[] {
  const direction = directionOf(open.inputSchema);
  if (direction === undefined) return [];
  const { member, forward, backward } = direction;
  const forwards = [...plan.bases, ...plan.neighbours].filter((base) => base[member] === forward);
  return forwards.slice(0, MAX_INPUTS).flatMap((base): Relation[] => {
    const result = resultOf(runs.outputOf(base), output);
    const [input] =
      Object.entries(base).find(([name, value]) => name !== member && typeof value === typeof result) ?? [];
    if (result === undefined || input === undefined) return [];
    const other = { ...base, [input]: result, [member]: backward };
    const holds = (_first: Json, second: Json): boolean =>
      isSame(base[input] ?? null, resultOf(second, output) ?? null);
    return [{ check: 'inverse', base, other, reason: `${backward} does not undo ${forward}`, isTotal: true, holds }];
  });
}

/** The input member that the output can replace: the only one of its kind. */
function primaryMember(schema: JsonObject, base: JsonObject, result: Json | undefined): string | undefined {
  const only = onlyMember(schema, TYPES);
  if (only !== undefined && kindOf(base[only]) === kindOf(result)) return only;
  return isJsonObject(base) && kindOf(base['value']) === kindOf(result) ? 'value' : undefined;
}

function kindOf(value: Json | undefined): string {
  return Array.isArray(value) ? 'array' : typeof value;
}

function resultOf(output: Json | undefined, member: string): Json | undefined {
  return isJsonObject(output) ? output[member] : undefined;
}

function isSame(first: Json, second: Json): boolean {
  return differenceFrom(first, second) === undefined;
}
