import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { openAudit } from '../../../audit/recorded-trail.ts';
import { systemClock } from '../../../lib/clock.ts';
import { fileRecordStore } from '../../../lib/file-record-store.ts';
import { openRegistry } from '../../../tempering/registry/registry.ts';
import { aCaller, anAcceptance, anArtifact } from '../../../tempering/tempering.testing.ts';
import { aTerminal } from '../../io.testing.ts';
import { toolWithEvidence, listStateTools } from '../../state/state-tools.ts';
import { toolAudit, type ToolAuditOptions } from './local-audit.ts';

const MANIFESTS = `
apiVersion: temper.dev/v1alpha1
kind: TrustPolicy
metadata: {name: p, namespace: team-a}
spec:
  level: {initial: restricted, ceiling: restricted}
  autonomy: Full
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
/** With the tool one call and an answer; without it a refusal. Other tasks need no tool. */
const SCRIPT = `
rules:
  - when: {lastUser: double, tools: [double], turn: 1}
    answer: {toolCalls: [{id: c1, name: double, arguments: {value: 21}}]}
  - when: {lastTool: {name: double, isError: false}}
    answer: {text: "It is 42."}
  - when: {lastUser: double}
    answer: {text: "I cannot calculate that.", stopReason: refusal}
  - answer: {text: "Hello."}
`;

describe('temper tool audit', () => {
  let folder: string;
  const records = () => fileRecordStore(join(folder, 'state'));
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'temper-tool-audit-'));
    await mkdir(join(folder, 'state'), { mode: 0o700 });
    const audit = await openAudit({ records: records(), clock: systemClock });
    const registry = await openRegistry({ records: records(), audit, clock: systemClock, builtIn: new Set() });
    await registry.register(anAcceptance(anArtifact()), aCaller());
    await audit.flush();
    await records().put('sessions', 'team-a_analyst_s-1', { agent: 'analyst', namespace: 'team-a', session: 's-1' });
    await writeFile(join(folder, 'agent.yaml'), MANIFESTS);
    await writeFile(join(folder, 'script.yaml'), SCRIPT);
  });
  after(() => rm(folder, { recursive: true, force: true }));

  async function run(changes: Partial<ToolAuditOptions> = {}): Promise<{ out: string; error: string }> {
    const io = { ...aTerminal(), cwd: folder, environment: { XDG_CONFIG_HOME: join(folder, 'config') } };
    const options: ToolAuditOptions = {
      tool: 'double',
      filename: ['agent.yaml'],
      message: ['double 21'],
      workspace: '.',
      maxTokens: 100_000,
      modelScript: 'script.yaml',
      state: 'state',
      output: 'text',
      ...changes,
    };
    assert.equal(await toolAudit(options, io), 0, io.errors());
    return { out: io.printed(), error: io.errors() };
  }

  it('a task that needs the tool ends well with it and badly without it, and the page of the tool shows both', async () => {
    const { out, error } = await run();
    assert.match(
      error,
      /1 tasks?, each with double and without it, use at most about 100000 tokens of replay\/scripted/,
    );
    assert.match(out, /double 21 +with +complete +1 +1 +2 /);
    assert.match(out, /double 21 +without +refusal +0 +0 +1 /);
    const [tool] = await listStateTools(records());
    assert.ok(tool);
    const page = await toolWithEvidence(records(), tool);
    assert.match(JSON.stringify(page['audit']), /"evidence":"Compared"/);
    assert.deepEqual(await records().list('tasks/team-a/analyst'), [], 'an audit is no task of the agent');
  });

  it('a task that never calls the tool is no evidence, and the output says so', async () => {
    const { out } = await run({ message: ['hello'] });
    assert.match(out, /no task called double, so this is not evidence/);
    const { out: json } = await run({ message: ['hello'], output: 'json' });
    assert.equal((JSON.parse(json) as { evidence: string }).evidence, 'NeverCalled');
  });

  it('a budget that is too low, too many tasks and an unknown tool are refused before any call', async () => {
    await assert.rejects(run({ maxTokens: 500 }), { code: 'TEMPER_USAGE', message: /set 2000 or more/ });
    await assert.rejects(run({ message: Array.from({ length: 11 }, () => 'x') }), { code: 'TEMPER_USAGE' });
    await assert.rejects(run({ tool: 'other' }), { code: 'TEMPER_NOT_FOUND' });
  });

  it('a session that reaches its part of the budget ends, and the comparison says why', async () => {
    const { out } = await run({ maxTokens: 2_000 });
    assert.match(out, /TEMPER_QUOTA_EXCEEDED/);
  });
});
