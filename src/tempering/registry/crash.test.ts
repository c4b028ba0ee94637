import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { openAudit } from '../../audit/recorded-trail.ts';
import { systemClock } from '../../lib/clock.ts';
import { fileRecordStore } from '../../lib/file-record-store.ts';
import { foldActivations } from './activation.ts';
import { aSourceStore } from '../tempering.testing.ts';
import { openRegistry } from './registry.ts';

const folders: string[] = [];
after(async () => {
  for (const folder of folders) await rm(folder, { recursive: true, force: true });
});

const WORKER = fileURLToPath(new URL('./crash-worker.testing.ts', import.meta.url));

/** A worker reports so many before it is killed: two of them are about the first tool. */
const MIN_CHANGES = 3;

/** Complete lines that the worker printed before it was killed. */
async function workUntilKilled(folder: string, round: number): Promise<string[]> {
  const worker = spawn(process.execPath, [WORKER, folder, String(round)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  worker.stdout.setEncoding('utf8');
  const changed = new Promise<void>((resolve) => {
    worker.stdout.on('data', (text: string) => {
      output += text;
      if (output.split('\n').length > MIN_CHANGES) resolve();
    });
  });
  await Promise.race([changed, once(worker, 'close')]);
  await new Promise((resolve) => setTimeout(resolve, Math.random() * 60));
  worker.kill('SIGKILL');
  await once(worker, 'close');
  return output.split('\n').slice(0, -1);
}

describe('a registry after its process was killed', () => {
  it('a reopened registry contains every reported change and no active tool without an acceptance', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'temper-crash-'));
    folders.push(folder);
    const reported = new Map<string, string>();
    for (let round = 0; round < 12; round += 1) {
      for (const line of await workUntilKilled(folder, round)) {
        const [state = '', digest = ''] = line.split(' ');
        reported.set(digest, state);
      }
      const records = fileRecordStore(folder);
      const audit = await openAudit({ records, clock: systemClock });
      const registry = await openRegistry({
        records,
        audit,
        clock: systemClock,
        builtIn: new Set(),
        sources: await aSourceStore(records),
      });
      const active = registry.all().filter((tool) => tool.active);
      for (const [digest, state] of reported) {
        const tool = active.find((candidate) => candidate.digest === digest);
        if (state === 'demoted') assert.equal(tool, undefined, `${digest} was demoted`);
        else if (state === 'Agent' && tool !== undefined) assert.equal(tool.tier, 'Agent');
        // The process may have demoted the tool after its last report.
        else if (tool === undefined)
          assert.ok(
            registry.all().some((known) => known.digest === digest && /demoted/.test(known.inactiveReason ?? '')),
            digest,
          );
      }
      const accepted = foldActivations(await audit.records()).byObject;
      for (const tool of active) assert.equal(accepted.get(tool.object)?.active, true);
    }
    assert.ok(reported.size > 12, 'the worker reported changes');
  });
});
