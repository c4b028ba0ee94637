import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { Command } from 'commander';
import { openAudit } from '../../audit/recorded-trail.ts';
import { systemClock } from '../../lib/clock.ts';
import { fileRecordStore } from '../../lib/file-record-store.ts';
import { lockState, type StateLock } from '../../standalone/lock.ts';
import { stateKeys } from '../../standalone/trust/state-key.ts';
import { trustedKey } from '../../standalone/trust/trust.ts';
import { createJudgeStandings, recordedStandings } from '../../tempering/canary/standings.ts';
import { openRegistry } from '../../tempering/registry/registry.ts';
import { IMPORTS_SESSION } from '../../tempering/registry/visibility.ts';
import { aCaller, anAcceptance, anArtifact } from '../../tempering/tempering.testing.ts';
import { aTerminal } from '../io.testing.ts';
import { runCommandLine } from '../command-line.ts';
import { createProgram } from '../program.ts';

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
const RUN = 'run -f agent.yaml --model-script script.yaml -m hi';

/** What each verb does while a run has locked the folder: its exit code, and what it prints. */
const VERBS: readonly (readonly [words: string, code: number, printed: RegExp])[] = [
  [RUN, 1, /TEMPER_STATE_LOCKED: .*process \d+ \(temper run\).*or use another --state/],
  ['acp -f agent.yaml --model-script script.yaml', 1, /TEMPER_STATE_LOCKED: .*process \d+ \(temper run\)/],
  ['mcp serve -f agent.yaml --model-script script.yaml', 1, /TEMPER_STATE_LOCKED: .*process \d+ \(temper run\)/],
  ['sessions', 0, /s-1/],
  ['sessions close s-1', 1, /TEMPER_STATE_LOCKED: .*process \d+ \(temper run\).*then repeat temper sessions close/],
  ['trace s-1', 0, /Hello\./],
  ['usage', 0, /agent\/team-a\/analyst/],
  ['events', 0, /No events in/],
  ['get tools', 0, /double/],
  ['describe tool double', 0, /double/],
  ['approve first --reason fine', 0, /the running process applies it now/],
  ['deny second --reason no', 0, /the running process applies it now/],
  ['demote double --reason wrong', 0, /the running process applies it now/],
  ['reactivate double --reason checked', 0, /the running process applies it now/],
  ['rate analyst s-1 9', 0, /rated 9 of 10; it counts when the next run starts/],
  ['trust explain analyst', 0, /analyst/],
  ['policy explain -f agent.yaml --tool file_read --workspace .', 0, /file_read/],
  ['audit', 0, /tool\.accepted/],
  ['audit verify', 0, /intact/],
  ['audit show double', 0, /tool\.accepted.*chain intact/s],
  ['audit --adopt', 1, /TEMPER_STATE_LOCKED: .*\(temper run\).*then repeat temper audit --adopt/],
  ['judges', 0, /acme\/easy/],
  ['judges --resume suspension-1', 1, /TEMPER_STATE_LOCKED: .*then repeat temper judges --resume/],
  ['tool export double', 0, /agentos\.emergent-tool\.v1/],
  ['tool export double --gitops out --approver ci', 1, /TEMPER_PROMOTION_NOT_READY/],
  ['tool import package.json --agent analyst', 0, /double/],
  ['tool push double oci://localhost:1/double:v1', 1, /TEMPER_OCI_FAILED/],
  ['tool audit double -f agent.yaml --model-script script.yaml -m hi', 0, /double/],
];

describe('a state folder that a run has locked', () => {
  let folder: string;
  let lock: StateLock;

  async function temper(words: string): Promise<{ code: number; printed: string }> {
    const io = { ...aTerminal(), cwd: folder, environment: { XDG_CONFIG_HOME: join(folder, 'config') } };
    const code = await runCommandLine(words.split(' '), io);
    return { code, printed: io.printed() + io.errors() };
  }

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'temper-locked-'));
    await writeFile(join(folder, 'agent.yaml'), MANIFESTS);
    await writeFile(join(folder, 'script.yaml'), 'rules:\n  - answer: {text: "Hello."}\n');
    const first = await temper(`${RUN} --session s-1`);
    assert.equal(first.code, 0, first.printed);
    const state = join(folder, '.temper');
    const records = fileRecordStore(state);
    const key = await trustedKey({ folder: state, records, keys: stateKeys(join(folder, 'config/temper')) });
    const audit = await openAudit({ records, clock: systemClock, key });
    const registry = await openRegistry({ records, audit, clock: systemClock, builtIn: new Set() });
    await registry.register(
      anAcceptance(anArtifact()),
      aCaller({ agent: 'analyst', namespace: 'team-a', session: IMPORTS_SESSION }),
    );
    await audit.flush();
    for (const name of ['first', 'second'])
      await records.put('approvalrequests', name, { spec: { type: 'PromoteTool' }, status: {} });
    const standings = createJudgeStandings(recordedStandings(records));
    await standings.record('acme/easy', { mutation: 'leak', caught: false, time: 't' }, 'suspension-1');
    await writeFile(join(folder, 'package.json'), (await temper('tool export double')).printed);
    lock = await lockState(state, 'temper run');
  });
  after(async () => {
    lock?.release();
    await rm(folder, { recursive: true, force: true });
  });

  for (const [words, code, printed] of VERBS) {
    it(`temper ${words} beside the run ${code === 0 ? 'works' : 'is refused with a reason'}`, async () => {
      const done = await temper(words);
      assert.equal(done.code, code, done.printed);
      assert.match(done.printed, printed);
    });
  }

  it('the table has every verb that acts on a state folder', () => {
    const found: string[] = [];
    const visit = (command: Command, path: string): void => {
      if (command.options.some(({ long }) => long === '--state')) found.push(path);
      for (const child of command.commands) visit(child, `${path} ${child.name()}`.trim());
    };
    visit(
      createProgram(aTerminal(), () => undefined),
      '',
    );
    assert.ok(found.length >= 15, found.join());
    const missing = found.filter((path) => !VERBS.some(([words]) => words === path || words.startsWith(`${path} `)));
    assert.deepEqual(missing, []);
  });
});
