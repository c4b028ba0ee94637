import { jsonDepth, type Json, type JsonObject, isJsonObject } from '../../../lib/json.ts';
import { type JsonNode, nodesOf, replaceAt } from './nodes.ts';
import { sampleOf, schemaAt } from './schema-samples.ts';
import type { SeededRandom } from './seeded-random.ts';
import { boundaryValues, neighbours } from './variations.ts';

/** Limits of one examination. */
const MAX_BASES = 12;
const MAX_NODES = 24;
const MAX_BOUNDARIES = 28;
const MAX_BOUNDARY_BASES = 2;
const MAX_NEIGHBOURS = 32;
const MAX_SAMPLES = 6;
const MAX_INPUT_CHARACTERS = 65_536;
const MAX_INPUT_DEPTH = 60;

export interface InputPlan {
  /** Inputs of tests and of earlier uses. */
  bases: JsonObject[];
  /** Valid inputs at the edges of the schema. */
  boundaries: JsonObject[];
  /** Valid inputs that differ from a base in one value, slightly. */
  neighbours: JsonObject[];
  /** Valid inputs that are made from the schema alone. */
  samples: JsonObject[];
}

export interface InputSources {
  inputSchema: JsonObject;
  tests: readonly JsonObject[];
  recorded: readonly Json[];
  isValid: (input: Json) => boolean;
  random: SeededRandom;
}

/** Plans inputs that the author of a tool did not choose. Pure: the same sources give the same inputs. */
export function planInputs(sources: InputSources): InputPlan {
  const { inputSchema, tests, recorded, random } = sources;
  const objects = [...tests, ...recorded.filter(isJsonObject)].filter((input) => isUsable(input, sources));
  const bases = distinct(objects).slice(0, MAX_BASES);
  const used = new Set(bases.map((input) => JSON.stringify(input)));
  const take = (candidates: readonly Json[], limit: number): JsonObject[] => {
    const chosen: JsonObject[] = [];
    for (const candidate of candidates) {
      if (chosen.length >= limit) break;
      const text = JSON.stringify(candidate);
      if (!isJsonObject(candidate) || used.has(text) || !isUsable(candidate, sources)) continue;
      used.add(text);
      chosen.push(candidate);
    }
    return chosen;
  };
  const nearby = take(variantsOf(bases, inputSchema, neighbours), MAX_NEIGHBOURS);
  const boundaries = take(variantsOf(bases.slice(0, MAX_BOUNDARY_BASES), inputSchema, boundaryValues), MAX_BOUNDARIES);
  const samples = take(
    Array.from({ length: 3 * MAX_SAMPLES }, () => sampleOf(inputSchema, inputSchema, random)),
    MAX_SAMPLES,
  );
  return { bases, boundaries, neighbours: nearby, samples };
}

/** Of the items of a list only the first: the others have the same schema. */
function placesOf(base: JsonObject): JsonNode[] {
  const isFirst = ({ path }: JsonNode): boolean => path.every((key) => typeof key === 'string' || key === 0);
  return nodesOf(base, MAX_NODES).filter(isFirst);
}

/** One variant per replacement: the first replacement of every value of every base, then the second ones, and so on. */
function variantsOf(
  bases: readonly JsonObject[],
  schema: JsonObject,
  replacements: (value: Json, schema: JsonObject) => Json[],
): Json[] {
  const places = bases.flatMap((base) =>
    placesOf(base).map((node) => ({
      base,
      node,
      values: replacements(node.value, schemaAt(schema, node.path)),
    })),
  );
  const rounds = Math.max(0, ...places.map(({ values }) => values.length));
  return Array.from({ length: rounds }, (_, round) =>
    places.flatMap(({ base, node, values }) => {
      const value = values[round];
      return value === undefined ? [] : [replaceAt(base, node.path, value)];
    }),
  ).flat();
}

function isUsable(input: Json, { isValid }: InputSources): boolean {
  return (
    JSON.stringify(input).length <= MAX_INPUT_CHARACTERS &&
    jsonDepth(input, MAX_INPUT_DEPTH) < MAX_INPUT_DEPTH &&
    isValid(input)
  );
}

function distinct(inputs: readonly JsonObject[]): JsonObject[] {
  return [...new Map(inputs.map((input) => [JSON.stringify(input), input])).values()];
}
