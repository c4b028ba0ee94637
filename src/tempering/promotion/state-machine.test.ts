import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { openAudit } from '../../audit/recorded-trail.ts';
import { isTemperError } from '../../lib/errors.ts';
import { memoryRecordStore, type RecordStore } from '../../lib/record-store.ts';
import type { ApprovalDecision } from '../../tools/approvals.ts';
import { createSchemaCompiler } from '../../tools/json-schema/compiler.ts';
import type { ToolArtifact } from '../../api/v1alpha1/emergenttool.ts';
import type { Digest } from '../../lib/canonical.ts';
import type { ToolOwner } from '../registry/visibility.ts';
import { artifactDigest } from '../registry/serialization.ts';
import { createPromotion, type Promotion } from './promotion.ts';
import { promotionRules } from './promotion-rules.ts';
import { openRegistry, type Registry } from '../registry/registry.ts';
import {
  aCaller,
  anAcceptance,
  anArtifact,
  anExaminer,
  anOp,
  aUse,
  aVerdict,
  createFakeClock,
} from '../tempering.testing.ts';
import type { ToolScope } from '../types.ts';

const LIMITS = { sessionTools: 2, agentTools: 1 };
const AGENTS = ['ann', 'bob'];
const SESSIONS = ['s-1', 's-10'];
const NAMESPACE = 'team-a';
const BUILT_IN = new Set(['file_read']);
/** Two tools share a name, one has a unique name, one has a built-in name. */
const ARTIFACTS = [
  anArtifact('alpha'),
  anArtifact('alpha', { description: 'Another.' }),
  anArtifact('beta'),
  anArtifact('file_read'),
];

type Command =
  | { do: 'register' | 'use' | 'fail' | 'raise'; tool: number; agent: number; session: number }
  | { do: 'evaluate' | 'share'; tool: number; agent: number }
  | { do: 'decide'; decision: ApprovalDecision['decision']; by: string }
  | { do: 'demote'; tool: number }
  | { do: 'close'; agent: number; session: number }
  | { do: 'panel' | 'tests'; good: boolean }
  | { do: 'later' | 'restart' };

const tool = fc.nat(ARTIFACTS.length - 1);
const agent = fc.nat(AGENTS.length - 1);
const session = fc.nat(SESSIONS.length - 1);
const commands: fc.Arbitrary<Command[]> = fc.array(
  fc.oneof(
    { weight: 5, arbitrary: fc.record({ do: fc.constant('register' as const), tool, agent, session }) },
    { weight: 5, arbitrary: fc.record({ do: fc.constant('use' as const), tool, agent, session }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('fail' as const), tool, agent, session }) },
    // All steps to tier Agent at once, because random sequences rarely complete them.
    { weight: 6, arbitrary: fc.record({ do: fc.constant('raise' as const), tool, agent, session }) },
    { weight: 5, arbitrary: fc.record({ do: fc.constantFrom('evaluate' as const, 'share' as const), tool, agent }) },
    {
      weight: 3,
      arbitrary: fc.record({
        do: fc.constant('decide' as const),
        decision: fc.constantFrom('Approve' as const, 'Approve' as const, 'Deny' as const),
        by: fc.constantFrom('user/eve', 'user/eve', 'agent/ann'),
      }),
    },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('demote' as const), tool }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('close' as const), agent, session }) },
    {
      weight: 1,
      arbitrary: fc.record({
        do: fc.constantFrom('panel' as const, 'tests' as const),
        good: fc.constantFrom(true, true, false),
      }),
    },
    { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('later' as const, 'restart' as const) }) },
  ),
  { minLength: 10, maxLength: 60, size: 'max' },
);

/** The model: the states that the rules allow. */
class ExpectedState {
  readonly demoted = new Set<string>();
  readonly mayBeAgent = new Set<string>();
  readonly mayBeShared = new Set<string>();
  readonly accepted = new Set<string>();
}

class RegistryFixture {
  readonly records: RecordStore = memoryRecordStore();
  readonly clock = createFakeClock();
  readonly expected = new ExpectedState();
  panelSays = true;
  testsPass = true;
  decision: ApprovalDecision = { decision: 'Deny', by: 'user/eve', reason: '' };
  registry!: Registry;
  promotion!: Promotion;
  counts = { agent: 0, shared: 0 };

  async start(): Promise<void> {
    const { records, clock } = this;
    const audit = await openAudit({ records, clock });
    this.registry = await openRegistry({ records, audit, clock, builtIn: BUILT_IN });
    let nonce = 0;
    this.promotion = createPromotion({
      registry: this.registry,
      audit,
      records,
      clock,
      schemas: createSchemaCompiler(),
      verifier: {
        tests: async () =>
          this.testsPass ? { passed: 1, failed: 0, problems: [] } : { passed: 0, failed: 1, problems: [] },
        outputs: async (_artifact, inputs) => inputs.map(() => ({ ok: true, output: { result: 1 } })),
        replay: async (_artifact, uses) => uses.map(() => ({ ok: true, output: { result: 1 } })),
      },
      examiner: anExaminer(),
      panel: {
        review: async () => {
          const verdict = aVerdict({ approved: this.panelSays });
          return { ...verdict, verdicts: [verdict, verdict] };
        },
      },
      approvals: {
        request: async (ask) => `r-${ask.subject.slice(7, 19)}`,
        waitForDecision: async () => this.decision,
      },
      events: () => undefined,
      nonce: () => `n-${this.clock.now().getTime()}-${(nonce += 1)}`,
      rules: () => ({ ...promotionRules({}), minSuccessfulUses: 1, minDistinctInputs: 1, minSuccessPercent: 50 }),
      limits: () => LIMITS,
      persistSource: () => true,
    });
  }
}

async function refusedOr<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if (isTemperError(error)) return undefined;
    throw error;
  }
}

/** The tool, owner and session that a command refers to. */
function targetOf(command: Command): { artifact: ToolArtifact; digest: Digest; owner: ToolOwner; session: string } {
  const artifact = ('tool' in command ? ARTIFACTS[command.tool] : undefined) ?? anArtifact();
  const name = ('agent' in command ? AGENTS[command.agent] : undefined) ?? '';
  const session = ('session' in command ? SESSIONS[command.session] : undefined) ?? '';
  return { artifact, digest: artifactDigest(artifact), owner: { agent: name, namespace: NAMESPACE }, session };
}

async function execute(fixture: RegistryFixture, command: Command, index: number): Promise<void> {
  switch (command.do) {
    case 'register':
      return register(fixture, command);
    case 'use':
    case 'fail':
      return use(fixture, command, index);
    case 'raise':
      await register(fixture, command);
      await use(fixture, command, index);
      return evaluate(fixture, command);
    case 'evaluate':
      return evaluate(fixture, command);
    case 'share':
      await fixture.promotion.requestShared(targetOf(command).digest, targetOf(command).owner, anOp());
      return;
    case 'decide':
      return decide(fixture, command);
    case 'demote':
      fixture.expected.demoted.add(targetOf(command).digest);
      return fixture.registry.demote(targetOf(command).digest, 'by hand', 'user/eve');
    case 'close': {
      const { owner, session } = targetOf(command);
      return fixture.registry.closeSession({ ...owner, session });
    }
    case 'panel':
      fixture.panelSays = command.good;
      return;
    case 'tests':
      fixture.testsPass = command.good;
      return;
    case 'later':
      fixture.clock.skip(25 * 3_600_000);
      return;
    case 'restart':
      return restart(fixture);
    default:
      command satisfies never;
  }
}

async function register({ registry, expected }: RegistryFixture, command: Command): Promise<void> {
  const { artifact, digest, owner, session } = targetOf(command);
  const done = await refusedOr(
    registry.register(anAcceptance(artifact), aCaller({ ...owner, session }), LIMITS).then(() => true),
  );
  if (done === true) expected.accepted.add(`${owner.agent} ${digest}`);
}

async function use({ registry }: RegistryFixture, command: Command, index: number): Promise<void> {
  const { artifact, owner, session } = targetOf(command);
  const changes = { ...owner, session, rootMessage: `m-${index}`, succeeded: command.do !== 'fail' };
  await registry.recordUse(aUse(artifact, { value: index }, changes));
}

async function evaluate(fixture: RegistryFixture, command: Command): Promise<void> {
  const { digest, owner } = targetOf(command);
  const { expected } = fixture;
  const owned = `${owner.agent} ${digest}`;
  const state = await fixture.promotion.evaluate(digest, owner, anOp());
  if (state.state !== 'Promoted' || state.to !== 'Agent') return;
  assert.ok(
    (fixture.panelSays && fixture.testsPass) || expected.mayBeAgent.has(owned),
    'promoted despite a failed panel or tests',
  );
  expected.mayBeAgent.add(owned);
  fixture.counts.agent += 1;
}

async function decide(fixture: RegistryFixture, command: Extract<Command, { do: 'decide' }>): Promise<void> {
  fixture.decision = { decision: command.decision, by: command.by, reason: '' };
  for (const subject of await fixture.promotion.awaitingApproval()) {
    const state = await refusedOr(fixture.promotion.awaitDecision(subject, anOp()));
    if (state?.state !== 'Promoted') continue;
    assert.equal(command.decision, 'Approve');
    assert.ok(fixture.testsPass);
    assert.notEqual(command.by, `agent/${subject.agent}`);
    fixture.expected.mayBeShared.add(subject.digest);
    fixture.counts.shared += 1;
  }
}

const SCOPES: ToolScope[] = AGENTS.flatMap((name) =>
  SESSIONS.map((id) => ({ agent: name, namespace: NAMESPACE, session: id })),
);

function view(registry: Registry, { agent, namespace, session }: ToolScope): string[] {
  return registry
    .resolve(agent, namespace, session)
    .map((known) => `${known.artifact.name} ${known.tier} ${known.digest}`);
}

async function restart(fixture: RegistryFixture): Promise<void> {
  const before = SCOPES.map((scope) => view(fixture.registry, scope).sort());
  await fixture.start();
  assert.deepEqual(
    SCOPES.map((scope) => view(fixture.registry, scope).sort()),
    before,
  );
}

function check({ registry, expected }: RegistryFixture): void {
  for (const scope of SCOPES) {
    const seen = registry.resolve(scope.agent, scope.namespace, scope.session);
    const names = seen.map((known) => known.artifact.name);
    assert.equal(new Set(names).size, names.length, 'a name is duplicated in a view');
    assert.ok(!names.some((name) => BUILT_IN.has(name)), 'a built-in name is shadowed');
    for (const known of seen) {
      assert.ok(!expected.demoted.has(known.digest), 'a demoted tool is served');
      const owned = `${known.owner.agent} ${known.digest}`;
      assert.ok(expected.accepted.has(owned), 'an active tool was never accepted');
      if (known.tier === 'Agent') assert.ok(expected.mayBeAgent.has(owned), 'tier Agent without a panel review');
      if (known.tier === 'Shared') assert.ok(expected.mayBeShared.has(known.digest), 'tier Shared without an approval');
    }
    assert.ok(seen.filter(({ tier }) => tier === 'Session').length <= LIMITS.sessionTools);
    assert.ok(seen.filter(({ tier }) => tier === 'Agent').length <= LIMITS.agentTools);
  }
}

describe('registry and promotion as a state machine', () => {
  it('registry and promotion satisfy all invariants under any sequence of commands', async () => {
    const reached = { agent: 0, shared: 0 };
    await fc.assert(
      fc.asyncProperty(commands, async (sequence) => {
        const fixture = new RegistryFixture();
        await fixture.start();
        for (const [index, command] of sequence.entries()) {
          await execute(fixture, command, index);
          check(fixture);
        }
        await restart(fixture);
        check(fixture);
        reached.agent += fixture.counts.agent;
        reached.shared += fixture.counts.shared;
      }),
      { numRuns: 300 },
    );
    assert.ok(
      reached.agent > 20 && reached.shared > 3,
      `the sequences cover too few promotions: ${JSON.stringify(reached)}`,
    );
  });
});
