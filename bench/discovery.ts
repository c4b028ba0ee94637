import { readFile } from 'node:fs/promises';
import { publicData } from '../test/support/public-data.ts';
import type { DiscoveryEntry } from '../src/discovery/entry.ts';
import { LexicalIndex } from '../src/discovery/lexical/lexical-index.ts';
import { search } from '../src/discovery/lexical/search.ts';
import { parameterText } from '../src/discovery/parameters.ts';
import { buildResult } from '../src/discovery/result.ts';
import type { JsonObject } from '../src/lib/json.ts';
import { createDecider } from '../src/policy/decider.ts';
import type { BenchRow } from './row.ts';

const ENTRIES = 2_000;
const CALLS = 200;
const CHANGES = 2_000;
const WORDS =
  'parse csv rows sum orders region revenue mail send file read list invoice month report chart customer'.split(' ');

function anEntry(number: number): DiscoveryEntry {
  const at = (step: number): string => WORDS[(number * step + Math.floor(number / WORDS.length)) % WORDS.length] ?? '';
  const name = `${at(3)}_${at(5)}_${number}`;
  const description = Array.from({ length: 20 }, (_, index) => at(index + 7)).join(' ');
  const request = { kind: 'Tool', name, category: 'code_execution', action: 'code:read', forged: true } as const;
  const base = { kind: 'emergent-tool', category: 'emergent', tags: [at(11)], requiredTools: [] } as const;
  return { id: `emergent-tool:${name}`, name, description, request, ...base };
}

export async function benchDiscovery(): Promise<BenchRow[]> {
  return [benchManyEntries(), ...(await benchFoundTools())];
}

/** A search over 2,000 entries with a policy decision per match, relative to reading all entries as text once. */
function benchManyEntries(): BenchRow {
  const entries = Array.from({ length: ENTRIES }, (_, number) => anEntry(number));
  const index = new LexicalIndex();
  entries.forEach((entry) => index.set(entry.id, entry));
  const decider = createDecider({
    agent: {
      name: 'analyst',
      namespace: 'team-a',
      spec: {
        trustPolicyRef: { name: 'p' },
        model: { primary: 'a/b' },
        prompt: { system: 'x' },
        forge: { enabled: true },
      },
    },
    policy: { name: 'p', spec: {} },
    level: 'restricted',
    tainted: false,
    workspace: '/workspace',
  });
  const permits = ({ request }: DiscoveryEntry): boolean =>
    request !== undefined && decider.decide(request).effect !== 'Deny';
  const searched = median(CALLS, (call) => {
    const query = `${WORDS[call % WORDS.length]} ${WORDS[(call * 7) % WORDS.length]} of the last month`;
    const answer = buildResult(search({ query }, { indexes: [index], permits }), new Set());
    if (answer.capabilities.length === 0) throw new Error(`bench: no result for "${query}"`);
  });
  const read = median(CALLS, () => {
    let found = 0;
    for (const entry of entries) found += JSON.stringify(entry).toLowerCase().split(' ').length;
    if (found === 0) throw new Error('bench: nothing was read');
  });
  const changed = median(CHANGES, (call) => {
    const entry = entries[call % ENTRIES];
    if (entry !== undefined) index.set(entry.id, { ...entry, description: `${entry.description} ${call}` });
  });
  const ratio = searched / read;
  return {
    name: `discovery: a search in ${ENTRIES} entries, with a policy decision per entry`,
    figures: {
      search: `${searched.toFixed(2)} ms`,
      'reading all entries as text': `${read.toFixed(2)} ms`,
      ratio: ratio.toFixed(2),
      'one entry changed': `${(changed * 1_000).toFixed(0)} µs`,
    },
    limit: 'ratio ≤ 4; a change ≤ a tenth of a search',
    met: ratio <= 4 && changed <= searched / 10,
  };
}

interface LabelledQuery {
  query: string;
  /** The tools that the query needs. */
  gold: string[];
}

interface PublicTool {
  name: string;
  description: string;
  category: string;
  parameters?: JsonObject;
}

/** What the first five results contain, for the 1,400 queries over the 4,076 tools of Seal-Tools. */
async function benchFoundTools(): Promise<BenchRow[]> {
  const files = ['tools', 'queries'].map((name) => publicData(`discovery/seal/${name}.jsonl`));
  if (!files.every(({ present }) => present)) return [];
  const [tools = [], queries = []] = await Promise.all(
    files.map(async ({ file }) => parseLines(await readFile(file, 'utf8'))),
  );
  const started = performance.now();
  const index = LexicalIndex.of((tools as PublicTool[]).map(entryOf));
  const built = performance.now() - started;
  const found = (queries as LabelledQuery[]).map(({ query, gold }) => {
    const from = performance.now();
    const ranked = search({ query }, { indexes: [index], permits: () => true });
    const milliseconds = performance.now() - from;
    const first = new Set(ranked.slice(0, 5).map(({ entry }) => entry.name));
    return { milliseconds, several: gold.length > 1, hits: gold.filter((name) => first.has(name)).length, gold };
  });
  const several = found.filter((one) => one.several);
  const one = found.filter(({ hits }) => hits > 0).length / found.length;
  const all = several.filter(({ hits, gold }) => hits === gold.length).length / several.length;
  const times = found.map(({ milliseconds }) => milliseconds).toSorted((a, b) => a - b);
  return [
    {
      name: `discovery: the first five results of ${found.length} queries over ${index.size} public tools`,
      figures: {
        'one needed tool': percent(one),
        'all of several': percent(all),
        index: `${built.toFixed(0)} ms`,
        'search p50': `${(times[Math.floor(times.length / 2)] ?? 0).toFixed(2)} ms`,
        'search p95': `${(times[Math.floor(times.length * 0.95)] ?? 0).toFixed(2)} ms`,
      },
      limit: 'one needed tool ≥ 99.5 %; all of several ≥ 77 % (goals: index ≤ 300 ms, p95 ≤ 5 ms)',
      met: one >= 0.995 && all >= 0.77,
    },
  ];
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

function percent(fraction: number): string {
  return `${(fraction * 100).toFixed(1)} %`;
}

function median(count: number, run: (call: number) => void): number {
  for (let call = 0; call < 20; call += 1) run(call);
  const times = Array.from({ length: count }, (_, call) => {
    const started = performance.now();
    run(call);
    return performance.now() - started;
  });
  return times.toSorted((a, b) => a - b)[Math.floor(count / 2)] ?? Number.NaN;
}
