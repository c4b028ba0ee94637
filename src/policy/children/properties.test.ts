import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { AgentSpec } from '../../api/v1alpha1/agent.ts';
import type { TrustPolicySpec } from '../../api/v1alpha1/trustpolicy.ts';
import { DIMENSION_NAMES, isTighter } from '../../api/limits/constraints.ts';
import { createDecider } from '../decider.ts';
import { AUTONOMY_PRESETS } from '../tables.ts';
import { anAgentSpec } from '../policy.testing.ts';
import type { Decider, Effect, PolicyRequest } from '../types.ts';
import { grantsWithinPolicy } from '../grants.ts';
import { admitChild } from './admission.ts';
import { inheritedSpec } from './inherited-spec.ts';
import { inherits } from './inherits.ts';

const PAIRS = Number(process.env['CHILD_PAIRS'] ?? 10_000);
const STRICTNESS: Readonly<Record<Effect, number>> = { Allow: 0, Escalate: 1, Deny: 2 };

/** Seeded choices, so that failures are reproducible. */
class Choices {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  below(limit: number): number {
    this.#state = (Math.imul(this.#state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((this.#state / 2 ** 32) * limit);
  }

  one<T>(...items: readonly [T, ...T[]]): T {
    return items[this.below(items.length)] ?? items[0];
  }

  some<T>(...items: readonly [T, ...T[]]): T[] {
    return Array.from({ length: this.below(4) }, () => this.one(...items));
  }

  /** A record with about half of the members. */
  maybe<T extends object>(members: T): Partial<T> {
    return Object.fromEntries(Object.entries(members).filter(() => this.below(2) === 0)) as Partial<T>;
  }
}

function specOf(choose: Choices): AgentSpec {
  const pin = () => ({
    tool: choose.one('file_*', '*', 'agent_send'),
    argument: choose.one('path', 'to'),
    allow: choose.some('data/*', '**', 'team-a'),
  });
  return anAgentSpec(
    choose.maybe({
      grants: choose.maybe({
        tools: choose.some('*', 'file_*', '*_read', 'file_read', 'web_fetch', 'memory_*', 'agent_send', 'made_*'),
        network: choose.some('*', '**:*', '*.example.com', 'api.example.com', 'example.org:80'),
        messages: choose.some('*', 'team-*', 'team-a'),
        memory: choose.maybe({
          read: choose.some('*', 'self.*', 'self.a'),
          write: choose.some('*', 'self.*', 'shared.*'),
        }),
      }),
      denyTools: choose.some('file_write', 'made_*', 'forge_tool', '*_send'),
      toolProfile: choose.one('Minimal', 'Coding', 'Messaging', 'Automation', 'Full'),
      mode: choose.one('Observe', 'Assist', 'Full'),
      autonomy: choose.one('Full', 'Semi', 'Supervised', 'Locked'),
      constraints: choose.maybe({
        files: choose.one('Workspace', 'Project', 'Full'),
        network: choose.one('None', 'Allowlist', 'Open'),
        terminal: choose.one('None', 'RestrictedCommands', 'Full'),
        requireApproval: choose.some('code:write', 'comms', 'memory:read'),
      }),
      arguments: Array.from({ length: choose.below(3) }, pin),
      forge: choose.maybe({
        enabled: choose.one(true, false),
        modes: choose.some('Compose', 'Sandbox'),
        apis: choose.some('crypto'),
      }),
    }) as Partial<AgentSpec>,
  );
}

function policyOf(choose: Choices): TrustPolicySpec {
  return choose.maybe({
    autonomy: choose.one('Full', 'Semi', 'Supervised'),
    tools: choose.maybe({ allow: choose.some('*'), deny: choose.some('web_fetch') }),
    egress: { allow: choose.some('**:*', '*.example.com') },
    forge: { apis: choose.some('crypto') },
  }) as TrustPolicySpec;
}

const CHANGED = [
  'grants',
  'denyTools',
  'mode',
  'arguments',
  'forge',
  'autonomy',
  'constraints',
  'toolProfile',
] as const;

/** Half of the children are their parent with one change, so that many pairs are admitted. */
function pairOf(choose: Choices): { child: AgentSpec; parent: AgentSpec } {
  const [parent, other] = [specOf(choose), specOf(choose)];
  if (choose.below(2) === 0) return { parent, child: other };
  const key = choose.one(...CHANGED);
  const { [key]: _, ...rest } = parent;
  return { parent, child: other[key] === undefined ? rest : { ...rest, [key]: other[key] } };
}

function requestOf(choose: Choices): PolicyRequest {
  const access = choose.one('read', 'write');
  return choose.one<() => PolicyRequest>(
    () => toolRequest(choose),
    () => toolRequest(choose),
    () => ({ kind: 'Network', host: choose.one('api.example.com', 'example.org'), port: choose.one(80, 443) }),
    () => ({ kind: 'File', path: choose.one('a', '/w/a', '/p/a', '/etc/a'), access }),
    () => ({ kind: 'Memory', key: choose.one('self.a', 'self.b', 'shared.a', 'other'), access }),
    () => ({ kind: 'Message', agent: choose.one('team-a', 'team-b', 'other') }),
    () => ({
      kind: 'Forge',
      mode: choose.one('Compose', 'Sandbox'),
      apis: choose.some('crypto'),
      domains: [],
      paths: [],
    }),
  )();
}

function toolRequest(choose: Choices): PolicyRequest {
  return {
    kind: 'Tool',
    name: choose.one('file_read', 'file_write', 'web_fetch', 'memory_set', 'agent_send', 'made_up', 'forge_tool'),
    category: choose.one('file_system', 'web', 'memory', 'communication'),
    action: choose.one('code:read', 'code:write', 'comms:internal', 'memory:read'),
    forged: choose.one(true, false),
    arguments: choose.one<AgentArguments>({}, { path: 'data/x' }, { path: 'x', to: 'team-a' }, { to: 'team-b' }),
  };
}

type AgentArguments = Record<string, string>;

function deciderOf(spec: AgentSpec, policy: TrustPolicySpec): Decider {
  return createDecider({
    agent: { name: 'a', namespace: 'n', spec },
    policy: { name: 'standard', spec: policy },
    level: 'standard',
    tainted: false,
    workspace: '/p/w',
    project: '/p',
  });
}

/** The policies that an agent and its children have in common, with constraints. */
function constrainedPolicyOf(choose: Choices): TrustPolicySpec {
  const constraints = choose.maybe({
    files: choose.one('Workspace', 'Project', 'Full'),
    network: choose.one('None', 'Allowlist', 'Open'),
    terminal: choose.one('None', 'RestrictedCommands', 'Full'),
  }) as NonNullable<TrustPolicySpec['constraints']>;
  return { ...policyOf(choose), level: { ceiling: choose.one('restricted', 'elevated') }, constraints };
}

describe('inheritance, over random pairs of agents', () => {
  it('no admitted child may do what its parent may not, over 10,000 pairs or CHILD_PAIRS', () => {
    const choose = new Choices(20_261_123);
    let admitted = 0;
    let allowed = 0;
    for (let round = 0; round < PAIRS; round += 1) {
      const { child, parent } = pairOf(choose);
      if (inherits(child, parent).length > 0) continue;
      admitted += 1;
      const policy = policyOf(choose);
      const ofChild = deciderOf(inheritedSpec(child, parent), policy);
      for (let sample = 0; sample < 4; sample += 1) {
        const asked = requestOf(choose);
        const { effect } = ofChild.decide(asked);
        if (effect === 'Deny') continue;
        if (effect === 'Allow') allowed += 1;
        const isStricter = STRICTNESS[effect] >= STRICTNESS[deciderOf(parent, policy).decide(asked).effect];
        if (!isStricter) assert.fail(JSON.stringify({ asked, child, parent, policy }));
      }
    }
    assert.ok(
      admitted > PAIRS / 5 && allowed > PAIRS / 20,
      `only ${admitted} pairs and ${allowed} requests were admitted`,
    );
  });

  it('a child is admitted if it is within its parent and the policy, and is then as strict as the policy in each field', () => {
    const choose = new Choices(20_261_204);
    let [admitted, refused] = [0, 0];
    for (let round = 0; round < 3_000; round += 1) {
      const { child, parent } = pairOf(choose);
      const policy = constrainedPolicyOf(choose);
      if (inherits(child, parent).length > 0) continue;
      const facts = { parent: { name: 'lead', spec: parent }, policy, template: undefined, children: 0, total: 0 };
      const admission = admitChild({ spec: child }, facts);
      const [problem] = grantsWithinPolicy(inheritedSpec(child, parent), policy);
      if ('refused' in admission) {
        refused += 1;
        assert.ok(problem !== undefined && admission.refused.startsWith(problem.message), admission.refused);
        continue;
      }
      admitted += 1;
      assert.equal(problem, undefined);
      const { constraints = {}, autonomy = 'Locked' } = admission.spec;
      assert.ok(AUTONOMY_PRESETS.indexOf(autonomy) >= AUTONOMY_PRESETS.indexOf(policy.autonomy ?? 'Semi'), autonomy);
      for (const name of DIMENSION_NAMES) {
        const [own, most] = [constraints[name], policy.constraints?.[name]];
        if (own !== undefined && most !== undefined) assert.ok(!isTighter(name, most, own), `${name} ${own}`);
      }
    }
    assert.ok(admitted > 100 && refused > 100, `${admitted} children were admitted, ${refused} refused`);
  });

  it('an agent is within itself, and a child that states what it takes over is admitted as before', () => {
    const choose = new Choices(7);
    for (let round = 0; round < 5_000; round += 1) {
      const { child, parent } = pairOf(choose);
      assert.deepEqual(inherits(child, child), []);
      assert.deepEqual(inherits(inheritedSpec(child, parent), parent), inherits(child, parent));
    }
  });
});
