import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { API_VERSION } from '../../src/api/names.ts';
import { fileRecordStore } from '../../src/lib/file-record-store.ts';
import type { JsonObject } from '../../src/lib/json.ts';
import type { StampedEvent } from '../../src/tools/events.ts';
import { jsonLines } from '../../test/support/json-lines.ts';
import { temper } from '../../test/system/command.ts';
import type { BenchRow } from '../row.ts';

const SPAWNS = 100;
const GOAL_MILLISECONDS = 500;
/** Writes of documents: a child is stored as one, and its manifests as two. */
const DOCUMENTS_PER_SPAWN = 3;
const MAX_RATIO = 10;
const PATTERNS = Array.from({ length: 20 }, (_, index) => `tool_${index}_*`);

const object = (kind: string, name: string, spec: JsonObject) => ({
  apiVersion: API_VERSION,
  kind,
  metadata: { name },
  spec,
});
const POLICY = object('TrustPolicy', 'p', {
  autonomy: 'Full',
  rules: { allow: ['org:hire'] },
  children: { perAgent: SPAWNS, total: SPAWNS },
});
const LEAD = object('Agent', 'lead', {
  trustPolicyRef: { name: 'p' },
  model: { primary: 'default/default' },
  prompt: { system: 'You are lead.' },
  grants: { tools: ['agent_spawn', ...PATTERNS] },
  children: { inherit: true },
  limits: { steps: SPAWNS },
});
const SPAWN = { prompt: 'You help.', tools: PATTERNS.map((pattern) => pattern.replace('*', 'part')) };
const CALLS = Array.from({ length: SPAWNS }, (_, index) => ({
  id: `c-${index}`,
  name: 'agent_spawn',
  arguments: { name: `helper-${index}`, ...SPAWN },
}));
const SCRIPT = { rules: [{ when: { turn: 1 }, answer: { toolCalls: CALLS } }, { answer: { text: 'done' } }] };

/** One answer of a model that starts 100 children in one process, from its first call to the last result: policy, admission and durable storage. */
export async function benchSpawns(): Promise<BenchRow[]> {
  const folder = await mkdtemp(join(tmpdir(), 'temper-bench-spawns-'));
  try {
    await writeFile(join(folder, 'agents.yaml'), `${JSON.stringify(POLICY)}\n---\n${JSON.stringify(LEAD)}`);
    await writeFile(join(folder, 'script.yaml'), JSON.stringify(SCRIPT));
    const options = ['-f', 'agents.yaml', '--model-script', 'script.yaml', '--output', 'json', '-m', 'go'];
    const { stdout, stderr } = await temper(['run', ...options], { cwd: folder });
    const events = jsonLines<StampedEvent>(stdout);
    const times = (type: StampedEvent['type']): number[] =>
      events.filter((event) => event.type === type).map(({ time }) => Date.parse(time));
    const spawned = Math.max(...times('tool-result')) - Math.min(...times('tool-call'));
    const records = fileRecordStore(join(folder, '.temper'));
    const children = (await records.list('children/default')).length;
    if (children !== SPAWNS) process.stderr.write(stderr);
    const bare = await writesOf(join(folder, 'bare'), SPAWNS * DOCUMENTS_PER_SPAWN);
    const ratio = spawned / bare;
    return [
      {
        name: `${SPAWNS} children started in one process, with policy, admission and storage`,
        figures: {
          spawned: `${spawned} ms (goal ${GOAL_MILLISECONDS} ms)`,
          'bare writes': `${bare.toFixed(0)} ms`,
          ratio: ratio.toFixed(1),
          'load average': loadavg()[0]?.toFixed(1) ?? '',
        },
        limit: `${SPAWNS} children; at most ${MAX_RATIO} times ${SPAWNS * DOCUMENTS_PER_SPAWN} durable writes`,
        met: children === SPAWNS && ratio <= MAX_RATIO,
      },
    ];
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function writesOf(folder: string, documents: number): Promise<number> {
  const records = fileRecordStore(folder);
  const started = performance.now();
  for (let index = 0; index < documents; index += 1) await records.put('bare', `document-${index}`, { ...LEAD });
  return performance.now() - started;
}
