import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { pathToFileURL } from 'node:url';
import { openAudit } from '../audit/recorded.ts';
import { systemClock } from '../lib/clock.ts';
import { fileRecords } from '../lib/file-records.ts';
import { foldActivations } from './activation.ts';
import { openRegistry } from './registry.ts';

const folders: string[] = [];
after(async () => {
  for (const folder of folders) await rm(folder, { recursive: true, force: true });
});

const here = (file: string): string => JSON.stringify(pathToFileURL(join(import.meta.dirname, file)).href);

/** Works on the folder until it is killed and says each thing only when it is done. */
const WORKER = `
import { openAudit } from ${here('../audit/recorded.ts')};
import { systemClock } from ${here('../lib/clock.ts')};
import { fileRecords } from ${here('../lib/file-records.ts')};
import { openRegistry } from ${here('registry.ts')};
import { aCaller, anAcceptance, anArtifact, aUse, aVerdict } from ${here('testing.ts')};
const records = fileRecords(process.argv[1]);
const audit = await openAudit({ records, clock: systemClock });
const registry = await openRegistry({ records, audit, clock: systemClock, builtIn: new Set() });
const limits = { sessionTools: 100000, agentTools: 100000 };
const owner = { agent: 'analyst', namespace: 'team-a' };
const say = (what, digest) => process.stdout.write(what + ' ' + digest + '\\n');
for (let number = 0; ; number += 1) {
  const artifact = anArtifact('tool_' + process.argv[2] + '_' + number);
  const accepted = anAcceptance(artifact);
  const session = 's-' + (number % 3);
  await registry.register(accepted, aCaller({ session }), limits);
  say('Session', accepted.digest);
  await registry.recordUse(aUse(artifact, { value: number }, { session }));
  if (number % 2 === 0) {
    await registry.promote({ digest: accepted.digest, owner, to: 'Agent', verdicts: [aVerdict()], actor: 'system', limits, sourceWithheld: number % 4 === 0 });
    say('Agent', accepted.digest);
  }
  if (number % 5 === 4) {
    await registry.demote(accepted.digest, 'by hand', 'person/eve');
    say('demoted', accepted.digest);
  }
}
`;

/** Lines the worker said whole before it was killed. */
async function workUntilKilled(folder: string, round: number): Promise<string[]> {
  const worker = spawn(process.execPath, ['--input-type=module', '-e', WORKER, folder, String(round)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let said = '';
  worker.stdout.setEncoding('utf8');
  worker.stdout.on('data', (text: string) => {
    said += text;
  });
  await once(worker.stdout, 'data');
  await new Promise((resolve) => setTimeout(resolve, Math.random() * 60));
  worker.kill('SIGKILL');
  await once(worker, 'close');
  return said.split('\n').slice(0, -1);
}

describe('a registry whose process is killed', () => {
  it('has all that was reported done, and nothing active that was not accepted', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'temper-crash-'));
    folders.push(folder);
    const standing = new Map<string, string>();
    for (let round = 0; round < 12; round += 1) {
      for (const line of await workUntilKilled(folder, round)) {
        const [what = '', digest = ''] = line.split(' ');
        standing.set(digest, what);
      }
      const records = fileRecords(folder);
      const audit = await openAudit({ records, clock: systemClock });
      const registry = await openRegistry({ records, audit, clock: systemClock, builtIn: new Set() });
      const active = registry.all().filter((tool) => tool.active);
      for (const [digest, what] of standing) {
        const tool = active.find((candidate) => candidate.digest === digest);
        if (what === 'demoted') assert.equal(tool, undefined, `${digest} was demoted`);
        else if (what === 'Agent' && tool !== undefined) assert.equal(tool.tier, 'Agent');
        // What came after the last report may be a demotion that was not reported any more.
        else if (tool === undefined)
          assert.ok(
            registry.all().some((known) => known.digest === digest && /demoted/.test(known.inactiveReason ?? '')),
            digest,
          );
      }
      const accepted = foldActivations(await audit.records()).byObject;
      for (const tool of active) assert.equal(accepted.get(tool.object)?.active, true);
    }
    assert.ok(standing.size > 12, 'the worker did something');
  });
});
