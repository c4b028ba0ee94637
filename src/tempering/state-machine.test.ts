import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { openAudit } from '../audit/recorded.ts';
import { isTemperError } from '../lib/errors.ts';
import { memoryRecords, type RecordStore } from '../lib/records.ts';
import type { ApprovalDecision } from '../tools/approvals.ts';
import { createSchemaCompiler } from '../tools/schemas.ts';
import type { ToolArtifact } from '../api/v1alpha1/emergenttool.ts';
import type { Digest } from '../lib/canonical.ts';
import type { ToolOwner } from './scopes.ts';
import { artifactDigest } from './documents.ts';
import { createPromotion, type Promotion } from './promotion.ts';
import { promotionRules } from './promotion-rules.ts';
import { openRegistry, type Registry } from './registry.ts';
import { aCaller, anAcceptance, anArtifact, anOp, aUse, aVerdict, handClock } from './testing.ts';
import type { ToolScope } from './types.ts';

const LIMITS = { sessionTools: 2, agentTools: 1 };
const AGENTS = ['ann', 'bob'];
const SESSIONS = ['s-1', 's-10'];
const NAMESPACE = 'team-a';
const BUILT_IN = new Set(['file_read']);
/** Two tools fight for the first name, one has a name of its own, one a built-in name. */
const ARTIFACTS = [
  anArtifact('alpha'),
  anArtifact('alpha', { description: 'Another.' }),
  anArtifact('beta'),
  anArtifact('file_read'),
];

type Step =
  | { do: 'register' | 'use' | 'fail' | 'raise'; tool: number; agent: number; session: number }
  | { do: 'evaluate' | 'share'; tool: number; agent: number }
  | { do: 'decide'; decision: ApprovalDecision['decision']; by: string }
  | { do: 'demote'; tool: number }
  | { do: 'close'; session: number }
  | { do: 'panel' | 'tests'; good: boolean }
  | { do: 'later' | 'restart' };

const tool = fc.nat(ARTIFACTS.length - 1);
const agent = fc.nat(AGENTS.length - 1);
const session = fc.nat(SESSIONS.length - 1);
const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    { weight: 5, arbitrary: fc.record({ do: fc.constant('register' as const), tool, agent, session }) },
    { weight: 5, arbitrary: fc.record({ do: fc.constant('use' as const), tool, agent, session }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('fail' as const), tool, agent, session }) },
    // The whole way at once, since chance alone seldom goes it.
    { weight: 6, arbitrary: fc.record({ do: fc.constant('raise' as const), tool, agent, session }) },
    { weight: 5, arbitrary: fc.record({ do: fc.constantFrom('evaluate' as const, 'share' as const), tool, agent }) },
    {
      weight: 3,
      arbitrary: fc.record({
        do: fc.constant('decide' as const),
        decision: fc.constantFrom('Approve' as const, 'Approve' as const, 'Deny' as const),
        by: fc.constantFrom('person/eve', 'person/eve', 'agent/ann'),
      }),
    },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('demote' as const), tool }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('close' as const), session }) },
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

/** What the rules allow, kept beside the real thing. */
class Expected {
  readonly demoted = new Set<string>();
  readonly mayBeAgent = new Set<string>();
  readonly mayBeShared = new Set<string>();
  readonly accepted = new Set<string>();
}

class World {
  readonly records: RecordStore = memoryRecords();
  readonly clock = handClock();
  readonly expected = new Expected();
  panelSays = true;
  testsPass = true;
  decision: ApprovalDecision = { decision: 'Deny', by: 'person/eve', reason: '' };
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
      },
      panel: {
        review: async () => {
          const verdict = aVerdict({ approved: this.panelSays });
          return { ...verdict, verdicts: [verdict, verdict] };
        },
      },
      approvals: { request: async (ask) => `r-${ask.subject.slice(7, 19)}`, decided: async () => this.decision },
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

/** The tool, its owner and the session a step is about. */
function aboutOf(step: Step): { artifact: ToolArtifact; digest: Digest; owner: ToolOwner; session: string } {
  const artifact = ('tool' in step ? ARTIFACTS[step.tool] : undefined) ?? anArtifact();
  const name = ('agent' in step ? AGENTS[step.agent] : undefined) ?? '';
  const session = ('session' in step ? SESSIONS[step.session] : undefined) ?? '';
  return { artifact, digest: artifactDigest(artifact), owner: { agent: name, namespace: NAMESPACE }, session };
}

async function take(world: World, step: Step, index: number): Promise<void> {
  switch (step.do) {
    case 'register':
      return register(world, step);
    case 'use':
    case 'fail':
      return use(world, step, index);
    case 'raise':
      await register(world, step);
      await use(world, step, index);
      return evaluate(world, step);
    case 'evaluate':
      return evaluate(world, step);
    case 'share':
      await world.promotion.requestShared(aboutOf(step).digest, aboutOf(step).owner, anOp());
      return;
    case 'decide':
      return decide(world, step);
    case 'demote':
      world.expected.demoted.add(aboutOf(step).digest);
      return world.registry.demote(aboutOf(step).digest, 'by hand', 'person/eve');
    case 'close':
      return world.registry.closeSession(aboutOf(step).session);
    case 'panel':
      world.panelSays = step.good;
      return;
    case 'tests':
      world.testsPass = step.good;
      return;
    case 'later':
      world.clock.advance(25 * 3_600_000);
      return;
    case 'restart':
      return restart(world);
    default:
      step satisfies never;
  }
}

async function register({ registry, expected }: World, step: Step): Promise<void> {
  const { artifact, digest, owner, session } = aboutOf(step);
  const done = await refusedOr(
    registry.register(anAcceptance(artifact), aCaller({ ...owner, session }), LIMITS).then(() => true),
  );
  if (done === true) expected.accepted.add(`${owner.agent} ${digest}`);
}

async function use({ registry }: World, step: Step, index: number): Promise<void> {
  const { artifact, owner, session } = aboutOf(step);
  const changes = { ...owner, session, rootMessage: `m-${index}`, succeeded: step.do !== 'fail' };
  await registry.recordUse(aUse(artifact, { value: index }, changes));
}

async function evaluate(world: World, step: Step): Promise<void> {
  const { digest, owner } = aboutOf(step);
  const { expected } = world;
  const owned = `${owner.agent} ${digest}`;
  const state = await world.promotion.evaluate(digest, owner, anOp());
  if (state.state !== 'Promoted' || state.to !== 'Agent') return;
  assert.ok((world.panelSays && world.testsPass) || expected.mayBeAgent.has(owned), 'promoted against panel or tests');
  expected.mayBeAgent.add(owned);
  world.counts.agent += 1;
}

async function decide(world: World, step: Extract<Step, { do: 'decide' }>): Promise<void> {
  world.decision = { decision: step.decision, by: step.by, reason: '' };
  for (const subject of await world.promotion.waiting()) {
    const state = await refusedOr(world.promotion.settle(subject, anOp()));
    if (state?.state !== 'Promoted') continue;
    assert.equal(step.decision, 'Approve');
    assert.ok(world.testsPass);
    assert.notEqual(step.by, `agent/${subject.agent}`);
    world.expected.mayBeShared.add(subject.digest);
    world.counts.shared += 1;
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

async function restart(world: World): Promise<void> {
  const before = SCOPES.map((scope) => view(world.registry, scope).sort());
  await world.start();
  assert.deepEqual(
    SCOPES.map((scope) => view(world.registry, scope).sort()),
    before,
  );
}

function check({ registry, expected }: World): void {
  for (const scope of SCOPES) {
    const seen = registry.resolve(scope.agent, scope.namespace, scope.session);
    const names = seen.map((known) => known.artifact.name);
    assert.equal(new Set(names).size, names.length, 'a name stands twice in a view');
    assert.ok(!names.some((name) => BUILT_IN.has(name)), 'a built-in name is shadowed');
    for (const known of seen) {
      assert.ok(!expected.demoted.has(known.digest), 'a demoted tool is served');
      const owned = `${known.owner.agent} ${known.digest}`;
      assert.ok(expected.accepted.has(owned), 'a tool is active that was not accepted');
      if (known.tier === 'Agent') assert.ok(expected.mayBeAgent.has(owned), 'tier Agent without the panel');
      if (known.tier === 'Shared') assert.ok(expected.mayBeShared.has(known.digest), 'tier Shared without a person');
    }
    assert.ok(seen.filter(({ tier }) => tier === 'Session').length <= LIMITS.sessionTools);
    assert.ok(seen.filter(({ tier }) => tier === 'Agent').length <= LIMITS.agentTools);
  }
}

describe('registry and promotion together', () => {
  it('keep every rule under any sequence of commands', async () => {
    const reached = { agent: 0, shared: 0 };
    await fc.assert(
      fc.asyncProperty(steps, async (sequence) => {
        const world = new World();
        await world.start();
        for (const [index, step] of sequence.entries()) {
          await take(world, step, index);
          check(world);
        }
        await restart(world);
        check(world);
        reached.agent += world.counts.agent;
        reached.shared += world.counts.shared;
      }),
      { numRuns: 300 },
    );
    assert.ok(reached.agent > 20 && reached.shared > 3, `the sequences reach too little: ${JSON.stringify(reached)}`);
  });
});
