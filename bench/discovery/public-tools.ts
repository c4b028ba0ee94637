import { readFile } from 'node:fs/promises';
import type { DiscoveryEntry } from '../../src/discovery/entry.ts';
import { parameterText } from '../../src/discovery/parameters.ts';
import type { JsonObject } from '../../src/lib/json.ts';
import { publicData } from '../../test/support/public-data.ts';

interface PublicTool {
  name: string;
  description: string;
  category: string;
  parameters?: JsonObject;
}

export interface LabelledQuery {
  query: string;
  /** The tools that the query needs. */
  gold: string[];
}

export interface PublicTools {
  entries: DiscoveryEntry[];
  queries: LabelledQuery[];
}

/** The 4,076 tools of Seal-Tools and the 1,400 queries for them; undefined where the data is absent. */
export async function readPublicTools(): Promise<PublicTools | undefined> {
  const files = ['tools', 'queries'].map((name) => publicData(`discovery/seal/${name}.jsonl`));
  if (!files.every(({ present }) => present)) return undefined;
  const [tools = [], queries = []] = await Promise.all(
    files.map(async ({ file }) => parseLines(await readFile(file, 'utf8'))),
  );
  return { entries: (tools as PublicTool[]).map(entryOf), queries: queries as LabelledQuery[] };
}

/** Shares of queries, from 0 to 1. */
export interface FirstFive {
  /** One needed tool is among the first five results. */
  one: number;
  /** All needed tools are, of the queries that need several. */
  all: number;
}

export function firstFive(
  answers: readonly { gold: readonly string[]; found: readonly { entry: DiscoveryEntry }[] }[],
): FirstFive {
  const hits = answers.map(({ gold, found }) => {
    const first = new Set(found.slice(0, 5).map(({ entry }) => entry.name));
    return { needed: gold.length, found: gold.filter((name) => first.has(name)).length };
  });
  const several = hits.filter(({ needed }) => needed > 1);
  return {
    one: hits.filter(({ found }) => found > 0).length / hits.length,
    all: several.filter(({ needed, found }) => found === needed).length / several.length,
  };
}

export function percent(fraction: number): string {
  return `${(fraction * 100).toFixed(1)} %`;
}

function entryOf({ name, description, category, parameters = {} }: PublicTool): DiscoveryEntry {
  const shown = { name, description, category, parameters: parameterText(parameters) };
  return { ...shown, id: `tool:${name}`, kind: 'tool', tags: [], requiredTools: [] };
}

function parseLines(text: string): unknown[] {
  return text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as unknown);
}
