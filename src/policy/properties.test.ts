import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { ACTION_TYPES, TOOL_CATEGORIES } from '../api/v1alpha1/actions.ts';
import type { AgentSpec } from '../api/v1alpha1/agent.ts';
import { DIMENSIONS, DIMENSION_NAMES } from '../api/limits/constraints.ts';
import type { SubConstraints } from '../api/v1alpha1/trust/constraints.ts';
import type { TrustPolicySpec } from '../api/v1alpha1/trustpolicy.ts';
import type { Json } from '../lib/json.ts';
import { createDecider } from './decider.ts';
import { aTool, anAgentSpec } from './policy.testing.ts';
import type { Effect, PolicyRequest, PolicySnapshot } from './types.ts';

const RUNS = { numRuns: 3_000, seed: 20_261_121 };
const LEVELS = ['sandboxed', 'restricted', 'standard', 'elevated'] as const;
const PRESETS = ['Full', 'Semi', 'Supervised', 'Locked'] as const;
const STRICTNESS: Readonly<Record<Effect, number>> = { Allow: 0, Escalate: 1, Deny: 2 };

const toolPattern = fc.constantFrom('*', 'file_*', '*_read', 'web_fetch', 'sh*', 'file_read', 'forge_tool');
const hostPattern = fc.constantFrom('*', '**:*', '*.example.com', 'api.example.com', 'example.org:80');
const actionEntry = fc.constantFrom(...ACTION_TYPES, 'code', 'vcs', 'comms');
const some = <T>(item: fc.Arbitrary<T>): fc.Arbitrary<T[]> => fc.array(item, { maxLength: 3 });
const keep: { noNullPrototype: true; requiredKeys: [] } = { noNullPrototype: true, requiredKeys: [] };

const constraints = fc.record(
  {
    files: fc.constantFrom('Workspace', 'Project', 'Full'),
    network: fc.constantFrom('None', 'Allowlist', 'Open'),
    git: fc.constantFrom('LocalOnly', 'ReadAndBranch', 'Full'),
    terminal: fc.constantFrom('None', 'RestrictedCommands', 'Full'),
    requireApproval: some(actionEntry),
  },
  keep,
) as fc.Arbitrary<SubConstraints>;

const agentSpec: fc.Arbitrary<AgentSpec> = fc
  .record(
    {
      grants: fc.record({
        tools: some(toolPattern),
        network: some(hostPattern),
        shell: some(fc.constantFrom('*', 'ls *', 'rm *')),
      }),
      denyTools: some(toolPattern),
      autonomy: fc.constantFrom(...PRESETS),
      constraints,
      arguments: fc.array(
        fc.record({
          tool: toolPattern,
          argument: fc.constantFrom('path', 'url'),
          allow: some(fc.constantFrom('data/*', '**', 'x')),
        }),
        { maxLength: 2 },
      ),
      forge: fc.record({
        enabled: fc.boolean(),
        modes: fc.constantFrom<('Compose' | 'Sandbox')[]>([], ['Compose'], ['Sandbox']),
      }),
    },
    keep,
  )
  .map((change) => anAgentSpec(change as Partial<AgentSpec>));

const policySpec = fc.record(
  {
    level: fc.record({ ceiling: fc.constantFrom(...LEVELS) }),
    autonomy: fc.constantFrom(...PRESETS),
    rules: fc.record({ deny: some(actionEntry), requireApproval: some(actionEntry), allow: some(actionEntry) }, keep),
    tools: fc.record({ allow: some(toolPattern), deny: some(toolPattern) }, keep),
    constraints,
    egress: fc.record({ allow: some(hostPattern) }),
    tainted: fc.record(
      {
        deny: some(fc.constantFrom('forge', 'network', 'message', 'spawn', 'memory')),
        network: some(hostPattern),
        tools: some(toolPattern),
      },
      keep,
    ),
  },
  keep,
) as fc.Arbitrary<TrustPolicySpec>;

const snapshot: fc.Arbitrary<PolicySnapshot> = fc.record({
  agent: agentSpec.map((spec) => ({ name: 'a', namespace: 'n', spec })),
  policy: policySpec.map((spec) => ({ name: 'p', spec })),
  level: fc.constantFrom(...LEVELS),
  tainted: fc.boolean(),
  workspace: fc.constant('/w'),
});

/** Agents that may do much, so that a constraint matters. */
const roomy: fc.Arbitrary<PolicySnapshot> = snapshot.map((of) => ({
  ...of,
  level: 'elevated',
  tainted: false,
  agent: {
    ...of.agent,
    spec: anAgentSpec({ grants: { tools: ['*'], network: ['**:*', '*.example.com'], shell: ['*'] } }),
  },
  policy: {
    ...of.policy,
    spec: {
      ...(of.policy.spec.constraints === undefined ? {} : { constraints: of.policy.spec.constraints }),
      level: { ceiling: 'elevated' },
      autonomy: 'Full',
      egress: { allow: ['**:*'] },
    },
  },
}));

const listed = fc.record({
  kind: fc.constant('Tool' as const),
  name: fc.constantFrom('file_read', 'file_write', 'web_fetch', 'shell', 'forge_tool', 'other'),
  category: fc.constantFrom(...TOOL_CATEGORIES),
  action: fc.constantFrom(...ACTION_TYPES, 'unknown:action'),
  forged: fc.boolean(),
});

const argumentValues: fc.Arbitrary<Json> = fc.oneof(
  fc.constantFrom<Json>({}, null, [], 'x', { path: 'data/x' }, { path: '../x' }, { url: 'https://api.example.com/' }),
  fc.constantFrom<Json>(
    { url: 'http://example.org/' },
    { command: 'ls -l' },
    { command: 'rm -r x' },
    { path: 'x', url: 'y' },
  ),
  fc.jsonValue({ maxDepth: 2 }) as fc.Arbitrary<Json>,
);

const request: fc.Arbitrary<PolicyRequest> = fc.oneof(
  listed,
  fc.tuple(listed, argumentValues).map(([tool, args]) => ({ ...tool, arguments: args })),
  fc.record({
    kind: fc.constant('Network' as const),
    host: fc.constantFrom('api.example.com', 'example.org', '127.0.0.1'),
    port: fc.constantFrom(80, 443),
  }),
  fc.record({
    kind: fc.constant('File' as const),
    path: fc.constantFrom('a', '/w/a', '/etc', '../a'),
    access: fc.constantFrom('read' as const, 'write' as const),
  }),
  fc.record({
    kind: fc.constant('Forge' as const),
    mode: fc.constantFrom('Compose' as const, 'Sandbox' as const),
    apis: fc.constantFrom<'crypto'[]>([], ['crypto']),
    domains: fc.constant([]),
    paths: fc.constant([]),
  }),
);

/** Requests that a constraint can decide about. */
const constrained: fc.Arbitrary<PolicyRequest> = fc.constantFrom<PolicyRequest>(
  { kind: 'Network', host: 'api.example.com', port: 443 },
  { kind: 'Network', host: 'example.org', port: 443 },
  { kind: 'File', path: '/etc/hosts', access: 'read' },
  aTool({ name: 'web_fetch', category: 'web', action: 'comms:external' }),
  aTool({ name: 'shell', category: 'terminal', action: 'code:write', arguments: { command: 'ls -l' } }),
  aTool({ name: 'git_push', category: 'version_control', action: 'vcs:push' }),
  aTool({ name: 'git_fetch', category: 'version_control', action: 'vcs:read', arguments: { url: 'https://a.test/x' } }),
);

function strictness(of: PolicySnapshot, asked: PolicyRequest): number {
  return STRICTNESS[createDecider(of).decide(asked).effect];
}

function withAgent(of: PolicySnapshot, change: Partial<AgentSpec>): PolicySnapshot {
  return { ...of, agent: { ...of.agent, spec: { ...of.agent.spec, ...change } } };
}

function withPolicy(of: PolicySnapshot, change: Partial<TrustPolicySpec>): PolicySnapshot {
  return { ...of, policy: { ...of.policy, spec: { ...of.policy.spec, ...change } } };
}

/** The value with every list reversed. */
function reversed<T>(value: T): T {
  if (Array.isArray(value)) return value.map(reversed).reverse() as T;
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, reversed(member)])) as T;
}

describe('decisions, over random agents, policies and requests', () => {
  it('a call is never allowed when its listing is denied', () => {
    let denied = 0;
    let allowed = 0;
    fc.assert(
      fc.property(snapshot, listed, argumentValues, (of, tool, args) => {
        const atListing = strictness(of, tool);
        const atCall = strictness(of, { ...tool, arguments: args });
        if (atListing === STRICTNESS.Deny) denied += 1;
        if (atCall === STRICTNESS.Allow) allowed += 1;
        assert.ok(atCall >= atListing);
      }),
      { ...RUNS, numRuns: 10_000 },
    );
    assert.ok(denied > 500 && allowed > 50, `too few relevant cases: ${denied} denied, ${allowed} allowed`);
  });

  it('decisions are deterministic, and explain returns the same decision', () => {
    fc.assert(
      fc.property(snapshot, request, (of, asked) => {
        const decision = createDecider(of).decide(asked);
        const { trace: trail, ...explained } = createDecider(structuredClone(of)).explain(asked);
        assert.deepEqual(explained, decision);
        const first = trail.find(({ verdict }) => verdict === 'denied' || verdict === 'escalated');
        const last = trail.at(-1);
        if (decision.effect === 'Deny') assert.deepEqual([last?.verdict, last?.rule], ['denied', decision.rule]);
        if (decision.effect === 'Escalate')
          assert.deepEqual([first?.verdict, first?.rule], ['escalated', decision.rule]);
        if (decision.effect === 'Allow') assert.equal(first, undefined);
      }),
      RUNS,
    );
  });

  it('decisions do not depend on the order of lists', () => {
    fc.assert(
      fc.property(snapshot, request, (of, asked) => {
        const { effect, rule } = createDecider(of).decide(asked);
        const other = createDecider(reversed(of)).decide(asked);
        assert.deepEqual([other.effect, other.rule], [effect, rule]);
      }),
      RUNS,
    );
  });

  it('autonomy only escalates: it never denies and never removes a denial', () => {
    fc.assert(
      fc.property(snapshot, request, fc.constantFrom(...PRESETS), (of, asked, preset) => {
        const plain = strictness(of, asked);
        const under = strictness(withAgent(of, { autonomy: preset }), asked);
        const without = strictness(withAgent(withPolicy(of, { autonomy: 'Full' }), { autonomy: 'Full' }), asked);
        assert.equal(under === STRICTNESS.Deny, plain === STRICTNESS.Deny);
        assert.ok(plain >= without && under >= without);
        if (of.agent.spec.autonomy === undefined) assert.ok(under >= plain);
      }),
      RUNS,
    );
  });

  it('a denial, required approval, taint or suspension never loosens a decision', () => {
    fc.assert(
      fc.property(snapshot, request, toolPattern, actionEntry, (of, asked, tool, action) => {
        const before = strictness(of, asked);
        const { rules, tools } = of.policy.spec;
        const stricter = [
          withAgent(of, { denyTools: [...(of.agent.spec.denyTools ?? []), tool] }),
          withPolicy(of, { tools: { ...tools, deny: [...(tools?.deny ?? []), tool] } }),
          withPolicy(of, { rules: { ...rules, deny: [...(rules?.deny ?? []), action] } }),
          withPolicy(of, { rules: { ...rules, requireApproval: [...(rules?.requireApproval ?? []), action] } }),
          { ...of, tainted: true },
        ];
        for (const after of stricter) assert.ok(strictness(after, asked) >= before);
        assert.equal(strictness(withPolicy(of, { suspend: true }), asked), STRICTNESS.Deny);
        assert.equal(strictness(withAgent(of, { suspend: true }), asked), STRICTNESS.Deny);
      }),
      RUNS,
    );
  });

  it('constraints of an agent never loosen a decision, and tightening one of them neither', () => {
    let changed = 0;
    fc.assert(
      fc.property(fc.oneof(snapshot, roomy), fc.oneof(request, constrained), constraints, (of, asked, own) => {
        const { constraints: _, ...spec } = of.agent.spec;
        const without = { ...of, agent: { ...of.agent, spec } };
        const before = strictness(without, asked);
        const after = strictness(withAgent(without, { constraints: own }), asked);
        assert.ok(after >= before);
        if (after > before) changed += 1;
        for (const name of DIMENSION_NAMES) {
          const tightest = { ...own, [name]: DIMENSIONS[name][0] };
          assert.ok(strictness(withAgent(without, { constraints: tightest }), asked) >= after);
        }
      }),
      RUNS,
    );
    assert.ok(changed > 200, `constraints changed only ${changed} decisions`);
  });

  it('constraints decide the same for the agent as for its policy', () => {
    fc.assert(
      fc.property(fc.oneof(snapshot, roomy), fc.oneof(request, constrained), constraints, (of, asked, shared) => {
        const { constraints: _, ...agent } = of.agent.spec;
        const { constraints: __, ...policy } = of.policy.spec;
        const open = { ...of, agent: { ...of.agent, spec: agent }, policy: { ...of.policy, spec: policy } };
        const ofAgent = createDecider(withAgent(open, { constraints: shared }));
        const ofPolicy = createDecider(withPolicy(open, { constraints: shared }));
        const [one, other] = [ofAgent.decide(asked), ofPolicy.decide(asked)];
        assert.deepEqual([one.effect, one.rule], [other.effect, other.rule]);
        assert.deepEqual([ofAgent.programs, ofAgent.forgeLimits.apis], [ofPolicy.programs, ofPolicy.forgeLimits.apis]);
      }),
      RUNS,
    );
  });

  it('removing a grant never loosens a decision', () => {
    fc.assert(
      fc.property(snapshot, request, fc.nat(), (of, asked, pick) => {
        const before = strictness(of, asked);
        const { grants } = of.agent.spec;
        for (const list of ['tools', 'network', 'shell'] as const) {
          const fewer = (grants?.[list] ?? []).filter((_, index, all) => index !== pick % all.length);
          assert.ok(strictness(withAgent(of, { grants: { ...grants, [list]: fewer } }), asked) >= before);
        }
        const fewerHosts = (of.policy.spec.egress?.allow ?? []).slice(1);
        assert.ok(strictness(withPolicy(of, { egress: { allow: fewerHosts } }), asked) >= before);
      }),
      RUNS,
    );
  });

  it('a lower level or ceiling never loosens a decision', () => {
    fc.assert(
      fc.property(snapshot, request, fc.nat(3), (of, asked, rank) => {
        const level = LEVELS[rank] ?? 'sandboxed';
        const higher = { ...of, level };
        const lower = { ...of, level: LEVELS[Math.max(0, rank - 1)] ?? 'sandboxed' };
        assert.ok(strictness(lower, asked) >= strictness(higher, asked));
        const capped = withPolicy(higher, { level: { ceiling: lower.level } });
        const open = withPolicy(higher, { level: { ceiling: level } });
        assert.ok(strictness(capped, asked) >= strictness(open, asked));
      }),
      RUNS,
    );
  });
});
