import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import * as fc from 'fast-check';
import type { ErrorCode } from '../../lib/error-codes.ts';
import { createDecider } from '../../policy/decider.ts';
import type { PolicySnapshot } from '../../policy/types.ts';
import { toolRequest } from '../../tools/authorize.ts';
import { IMPORTS_SESSION } from '../../tempering/registry/visibility.ts';
import { anAcceptance } from '../../tempering/tempering.testing.ts';
import type { ToolResult } from '../../tools/contract.ts';
import { createSchemaCompiler } from '../../tools/json-schema/compiler.ts';
import { builtInDescriptors } from '../built-in.ts';
import { anEngine, anOp } from '../engine.testing.ts';
import { explainCall } from './explain-call.ts';
import { anAsker, type AskedCall, askedCalls, type Asker } from './questions.testing.ts';
import { ruleOfRefusal } from './steps.ts';
import { explainedTools, externalTools, forgedArtifacts } from './external-tools.testing.ts';

const CALLS = 30;
/** Agents that are the same in each run. Their calls alone have every tool and every kind of answer; a change of the generators needs another seed. */
const SAME = { numRuns: 14, seed: 3 };
/** Other agents: more of them with RUNS, those of another run with its SEED. */
const OTHERS = { numRuns: Number(process.env['RUNS'] ?? 4), seed: Number(process.env['SEED'] ?? Date.now()) };

/** What refuses a call before it has any effect. Another error is one of the work itself. */
const REFUSALS: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'TEMPER_POLICY_DENIED',
  'TEMPER_CONNECTION_DENIED',
  'TEMPER_TOOL_NOT_FOUND',
  'TEMPER_TOOL_INPUT_INVALID',
  'TEMPER_FILE_DENIED',
  'TEMPER_FETCH_DENIED',
  'TEMPER_QUOTA_EXCEEDED',
  'TEMPER_PATTERN_INVALID',
  'TEMPER_SESSION_INVALID',
]);

const IMPORTER = { agent: 'a', namespace: 'n', session: IMPORTS_SESSION, rootMessage: 'm', authorModel: 'package' };

const NO_SANDBOX = { run: () => Promise.reject(new Error('no sandbox')) } as never;

describe('the explanation of a call beside the call', () => {
  let workspace = '';
  let protectedFolders: string[] = [];
  before(async () => {
    workspace = await mkdtemp(join(tmpdir(), 'temper-explained-'));
    await mkdir(join(workspace, 'data'));
    await writeFile(join(workspace, 'data/a.csv'), 'a\n');
    protectedFolders = [join(workspace, '.temper'), join(workspace, 'held/state')];
    for (const folder of protectedFolders) await mkdir(folder, { recursive: true });
  });
  after(() => rm(workspace, { recursive: true, force: true }));

  /** The calls of one agent in an engine like that of `temper run`, each in a session of its own. */
  async function aCaller({ agent, policy, level, session }: Asker) {
    const quota = agent.quotas?.toolCallsPerMinute;
    const { engine, registry, asked, call } = await anEngine(
      { workspace, sandbox: NO_SANDBOX, protectedPaths: protectedFolders },
      {
        agent,
        policy,
        level,
        decision: 'Approve',
        agents: { externalTools },
        ...(quota === undefined ? {} : { quotas: { toolCallsPerMinute: quota } }),
      },
    );
    // As imported ones, they are tools of every session.
    for (const artifact of forgedArtifacts()) await registry.register(anAcceptance(artifact), IMPORTER);
    return {
      async verdict({ tool, input }: AskedCall, id: string): Promise<string> {
        if (session !== 'clean') {
          // What a tainted session of another agent wrote is private data too.
          const message =
            session === 'private' ? { source: 'Agent' as const, tainted: true } : { source: 'Peer' as const };
          await engine.handle({ session: id, text: 'x', ...message }, anOp());
        }
        asked.length = 0;
        return verdictOf(await call(tool, input, id), asked[0]?.reason);
      },
      close: () => engine.stop(),
    };
  }

  function verdictOf(result: ToolResult, question: string | undefined): string {
    if (!result.ok && REFUSALS.has(result.error.code)) {
      return `Deny ${ruleOfRefusal(result.error.code, result.error.rule)}`;
    }
    return question === undefined ? 'Allow' : `Escalate ${question}`;
  }

  function ruleIn(work: string): string {
    return work.slice(work.lastIndexOf('(') + 1, -1);
  }

  it('an explanation has the verdict and the rule of the call, over generated agents and calls', async () => {
    const schemas = createSchemaCompiler();
    const external = explainedTools();
    const descriptors = [...builtInDescriptors(), ...external.map(({ descriptor }) => descriptor)];
    const tools = new Map(descriptors.map((tool) => [tool.name, tool]));
    // It only works within a message.
    const unasked = new Set([...tools.keys()].filter((name) => name !== 'agent_run'));
    const counts = new Map<string, number>();
    const questions = fc.tuple(anAsker, askedCalls(workspace, CALLS));
    const cases = [SAME, OTHERS].flatMap((sampled) => fc.sample(questions, sampled));
    for (const [number, [asker, calls]] of cases.entries()) {
      const { agent, policy, level, session } = asker;
      const snapshot: PolicySnapshot = {
        agent: { name: 'a', namespace: 'n', spec: agent },
        policy: { name: 'p', spec: policy },
        level,
        tainted: session !== 'clean',
        hasPrivateData: session === 'private',
        workspace,
      };
      const decider = createDecider(snapshot);
      const caller = await aCaller(asker);
      for (const [index, asked] of calls.entries()) {
        const descriptor = tools.get(asked.tool);
        assert.ok(descriptor !== undefined, asked.tool);
        const {
          effect,
          rule,
          reason,
          refused = [],
        } = explainCall(
          { decider, schemas, snapshot, protectedFolders, external },
          toolRequest(descriptor, asked.input),
        );
        const explained = { Allow: 'Allow', Deny: `Deny ${rule}`, Escalate: `Escalate ${reason}` }[effect];
        const verdict = await caller.verdict(asked, `s-${index}`);
        // A refused step fails the call if the steps before it did not.
        const isLater = refused.some((work) => work.startsWith('step ') && verdict === `Deny ${ruleIn(work)}`);
        if (!isLater) assert.equal(explained, verdict, JSON.stringify({ SEED: OTHERS.seed, asked, asker }));
        if (number >= SAME.numRuns) continue;
        unasked.delete(asked.tool);
        counts.set(effect === 'Deny' ? rule : effect, (counts.get(effect === 'Deny' ? rule : effect) ?? 0) + 1);
      }
      await caller.close();
    }
    assert.deepEqual([...unasked], [], 'each tool is asked about');
    const kinds = [
      'Allow',
      'Escalate',
      'input-schema',
      'workspace',
      'quota',
      'grant.tools',
      'grant.memory',
      'mode',
      'available',
    ];
    for (const kind of kinds) assert.ok((counts.get(kind) ?? 0) > 0, `no ${kind}: ${JSON.stringify([...counts])}`);
  });
});
