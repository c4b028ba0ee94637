import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { openAudit } from '../../audit/recorded-trail.ts';
import type { AuditTrail } from '../../audit/port.ts';
import { type Clock, systemClock } from '../../lib/clock.ts';
import { fileRecordStore } from '../../lib/file-record-store.ts';
import { textAt } from '../../lib/json.ts';
import { rateTask, recordTask } from '../../standalone/levels/local-tasks.ts';
import { stateKeys } from '../../standalone/trust/state-key.ts';
import { prepareStateFolder, trustedKey } from '../../standalone/trust/trust.ts';
import { openRegistry, type Registry } from '../../tempering/registry/registry.ts';
import { IMPORTS_SESSION } from '../../tempering/registry/visibility.ts';
import { aCaller, anAcceptance, anArtifact } from '../../tempering/tempering.testing.ts';
import { aTerminal, type FakeTerminal } from '../io.testing.ts';
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
const AGENT = { agent: OWNER.name, namespace: OWNER.namespace };
const TOOL = anAcceptance(anArtifact());

describe('tools and levels that records change, in temper run', () => {
  let folder: string;
  const inFolder = (): FakeTerminal => ({
    ...aTerminal(),
    cwd: folder,
    environment: { XDG_CONFIG_HOME: join(folder, 'config') },
  });
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'temper-deactivated-'));
    await writeFile(join(folder, 'agent.yaml'), MANIFESTS);
    await writeFile(join(folder, 'script.yaml'), 'rules:\n  - answer: {text: "Hello."}\n');
    await prepareState();
  });
  after(() => rm(folder, { recursive: true, force: true }));

  async function inState<T>(name: string, clock: Clock, work: (registry: Registry, audit: AuditTrail) => Promise<T>) {
    const state = join(folder, name);
    const keys = stateKeys(configFolder(inFolder()));
    await prepareStateFolder(state, keys);
    const records = fileRecordStore(state);
    const key = await trustedKey({ folder: state, records, keys });
    const audit = await openAudit({ records, clock, key });
    const result = await work(await openRegistry({ records, audit, clock, builtIn: new Set() }), audit);
    await audit.flush();
    return { records, result };
  }

  /** A state folder with a tool, and with tasks that ended badly whenever they called it. */
  async function prepareState(): Promise<void> {
    const { records } = await inState('state', systemClock, (registry) =>
      registry.register(TOOL, aCaller({ session: IMPORTS_SESSION })),
    );
    const task = { session: 's-1', endedAt: systemClock.now().getTime(), categories: [] };
    for (let count = 0; count < 27; count += 1) {
      const isBad = count >= 20;
      const ended = { outcome: isBad ? 'failed' : 'completed', tools: isBad ? [TOOL.digest] : [] } as const;
      await recordTask(records, OWNER, { ...task, id: `msg-${String(count).padStart(3, '0')}`, ...ended });
    }
  }

  async function runOnce(state = 'state', manifests = 'agent.yaml'): Promise<string> {
    const io = inFolder();
    const source = { filename: [manifests], modelScript: 'script.yaml', workspace: '.', state };
    assert.equal(await run({ ...source, message: ['hi'], output: 'json' }, io), 0, io.errors());
    return io.printed();
  }

  async function describeTool(): Promise<string> {
    const io = inFolder();
    await describeObject({ targets: ['tool', 'double'], state: 'state', output: 'text' }, io);
    return io.printed();
  }

  it('a tool that makes tasks end worse: the run deactivates it, describe gives the figures and the next step, and a decision with a passed verification brings it back', async () => {
    assert.match(await runOnce(), /"type":"demotion".*7 of its 7 tasks ended badly, and 0 of 20 others/);
    const page = await describeTool();
    assert.match(page, /deactivated: 7 of its 7 tasks ended badly.*temper reactivate double/s);
    assert.doesNotMatch(await runOnce(), /"type":"demotion"/);
    await recordDecision(
      { verb: 'Reactivate', target: 'double', reason: 'checked', state: 'state', output: 'text' },
      inFolder(),
    );
    assert.doesNotMatch(await runOnce(), /"type":"(?:demotion|warning)"/);
    assert.doesNotMatch(await describeTool(), /deactivated/);
  });

  it('a run starts with the tests of tools whose last verification is too old, and demotes one that fails', async () => {
    await writeFile(join(folder, 'decay.yaml'), MANIFESTS.replace('spec: {', 'spec: {decay: {reverifyEvery: 24h}, '));
    const sound = anAcceptance(anArtifact('sound'));
    const broken = anAcceptance(
      anArtifact('broken', { tests: [{ input: '{"value":2}', expectedOutput: '{"result":5}' }] }),
    );
    await inState('old-state', { ...systemClock, now: () => new Date('2026-03-01T09:00:00Z') }, async (registry) => {
      for (const tool of [sound, broken]) {
        await registry.register(tool, aCaller());
        const order = { digest: tool.digest, owner: AGENT, to: 'Agent', verdicts: [], actor: 'system' } as const;
        await registry.promote({ ...order, limits: { sessionTools: 10, agentTools: 50 }, sourceWithheld: false });
      }
    });
    assert.match(await runOnce('old-state', 'decay.yaml'), /"type":"demotion","tool":"broken".*1 of 1 tests failed/);
    const actions = async (): Promise<string[]> => {
      const { result } = await inState('old-state', systemClock, (_registry, audit) => audit.records());
      return result
        .filter(({ action }) => /^tool\.(verified|demoted)$/.test(action))
        .map(({ facts }) => textAt(facts, ['tool']));
    };
    assert.deepEqual((await actions()).toSorted(), ['broken', 'sound']);
    assert.doesNotMatch(await runOnce('old-state', 'decay.yaml'), /"type":"demotion"/);
    assert.equal((await actions()).length, 2);
  });

  it('a level that an approver decides is requested by one run, and decides the calls of the next one', async () => {
    const strategy = 'strategy: {type: Weighted, minTasks: 1, minRatings: 1, requireHuman: [restricted]}';
    const levels = MANIFESTS.replace('initial: restricted', 'initial: sandboxed').replace(
      'spec: {',
      `spec: {${strategy}, `,
    );
    await writeFile(join(folder, 'levels.yaml'), levels);
    const { records } = await inState('level-state', systemClock, async () => undefined);
    const task = { session: 's-1', endedAt: systemClock.now().getTime(), categories: [], tools: [] };
    await recordTask(records, OWNER, { ...task, id: 'msg-001', outcome: 'completed' });
    await rateTask(records, OWNER, 'msg-001', { rating: 9 });
    assert.match(await runOnce('level-state', 'levels.yaml'), /"level":"sandboxed"/);
    const [request] = await records.list('approvalrequests');
    const decision = { verb: 'Approve', target: request?.name ?? '', reason: 'earned', state: 'level-state' } as const;
    await recordDecision({ ...decision, output: 'text' }, inFolder());
    assert.match(await runOnce('level-state', 'levels.yaml'), /"level":"restricted"/);
    assert.match(await runOnce('level-state', 'levels.yaml'), /"level":"restricted"/);
  });
});
