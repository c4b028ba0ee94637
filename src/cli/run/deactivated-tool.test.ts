import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import { openAudit } from '../../audit/recorded-trail.ts';
import { systemClock } from '../../lib/clock.ts';
import { fileRecordStore } from '../../lib/file-record-store.ts';
import { recordTask } from '../../standalone/levels/local-tasks.ts';
import { stateKeys } from '../../standalone/trust/state-key.ts';
import { prepareStateFolder, trustedKey } from '../../standalone/trust/trust.ts';
import { openRegistry } from '../../tempering/registry/registry.ts';
import { IMPORTS_SESSION } from '../../tempering/registry/visibility.ts';
import { aCaller, anAcceptance, anArtifact } from '../../tempering/tempering.testing.ts';
import type { CliIo } from '../io.ts';
import { configFolder } from '../state/config-folder.ts';
import { describe as describeObject } from '../state/describe.ts';
import { recordDecision } from '../state/record-decision.ts';
import { run } from './run.ts';

const MANIFESTS = `
apiVersion: temper.dev/v1alpha1
kind: TrustPolicy
metadata: {name: p, namespace: team-a}
spec: {level: {initial: restricted, ceiling: restricted}}
---
apiVersion: temper.dev/v1alpha1
kind: Agent
metadata: {name: analyst, namespace: team-a}
spec:
  trustPolicyRef: {name: p}
  model: {primary: default/default}
  prompt: {system: You calculate.}
  grants: {tools: ["*"]}
`;
const OWNER = { name: 'analyst', namespace: 'team-a' };
const TOOL = anAcceptance(anArtifact());

describe('a tool that makes tasks end worse, in temper run', () => {
  let folder: string;
  let out = '';
  let io: CliIo;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'temper-deactivated-'));
    io = {
      out: (text) => void (out += text),
      error: (text) => void (out += text),
      stdin: async () => '',
      async *lines() {},
      cwd: folder,
      environment: { XDG_CONFIG_HOME: join(folder, 'config') },
      colour: false,
      terminal: false,
      signal: NEVER_ABORTED,
    };
    await writeFile(join(folder, 'agent.yaml'), MANIFESTS);
    await writeFile(join(folder, 'script.yaml'), 'rules:\n  - answer: {text: "Hello."}\n');
    await prepareState();
  });
  after(() => rm(folder, { recursive: true, force: true }));

  /** A state folder with a tool, and with tasks that ended badly whenever they called it. */
  async function prepareState(): Promise<void> {
    const state = join(folder, 'state');
    const keys = stateKeys(configFolder(io));
    await prepareStateFolder(state, keys);
    const records = fileRecordStore(state);
    const key = await trustedKey({ folder: state, records, keys });
    const audit = await openAudit({ records, clock: systemClock, key });
    const registry = await openRegistry({ records, audit, clock: systemClock, builtIn: new Set() });
    await registry.register(TOOL, aCaller({ session: IMPORTS_SESSION }));
    await audit.flush();
    const task = { session: 's-1', endedAt: systemClock.now().getTime(), categories: [] };
    for (let count = 0; count < 27; count += 1) {
      const isBad = count >= 20;
      const ended = { outcome: isBad ? 'failed' : 'completed', tools: isBad ? [TOOL.digest] : [] } as const;
      await recordTask(records, OWNER, { ...task, id: `msg-${String(count).padStart(3, '0')}`, ...ended });
    }
  }

  async function runOnce(): Promise<string> {
    out = '';
    const source = { filename: ['agent.yaml'], modelScript: 'script.yaml', workspace: '.', state: 'state' };
    assert.equal(await run({ ...source, message: ['hi'], output: 'json' }, io), 0, out);
    return out;
  }

  async function describeTool(): Promise<string> {
    out = '';
    await describeObject({ targets: ['tool', 'double'], state: 'state', output: 'text' }, io);
    return out;
  }

  it('the run deactivates it, describe gives the figures and the next step, and a decision with a passed verification brings it back', async () => {
    assert.match(await runOnce(), /"type":"demotion".*7 of its 7 tasks ended badly, and 0 of 20 others/);
    const page = await describeTool();
    assert.match(page, /deactivated: 7 of its 7 tasks ended badly.*temper reactivate double/s);
    assert.doesNotMatch(await runOnce(), /"type":"demotion"/);
    await recordDecision(
      { verb: 'Reactivate', target: 'double', reason: 'checked', state: 'state', output: 'text' },
      io,
    );
    assert.doesNotMatch(await runOnce(), /"type":"(?:demotion|warning)"/);
    assert.doesNotMatch(await describeTool(), /deactivated/);
  });
});
