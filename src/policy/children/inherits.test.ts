import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { AgentSpec } from '../../api/v1alpha1/agent.ts';
import { anAgentSpec } from '../policy.testing.ts';
import { admitChild } from './admission.ts';
import { inheritedSpec } from './inherited-spec.ts';
import { inherits } from './inherits.ts';
import { COMPARED_FIELDS, FREE_FIELDS } from './ruled-fields.ts';

const PARENT = anAgentSpec({
  grants: {
    tools: ['file_*', 'agent_spawn'],
    network: ['**.example.com'],
    memory: { read: ['shared.*'], write: ['self.*'] },
    messages: ['team-*'],
    spawn: ['worker-*'],
    shell: ['git'],
    environment: ['LANG'],
  },
  model: { primary: 'openai/gpt-4o', fallbacks: ['openai/gpt-4o-mini'], maxOutputTokens: 1_000 },
  denyTools: ['file_delete'],
  arguments: [{ tool: 'file_*', argument: 'path', allow: ['data/**'] }],
  autonomy: 'Supervised',
  mode: 'Assist',
  toolProfile: 'Coding',
  limits: { turns: 10, toolTimeout: '20s' },
  quotas: {
    tokensPerHour: 1_000,
    tokensPerDay: 10_000,
    costPerHour: '1.00',
    costPerDay: '2.00',
    costPerMonth: '9.00',
    toolCallsPerMinute: 10,
    networkBytesPerHour: '1Mi',
  },
  forge: { enabled: true, modes: ['Sandbox'], apis: ['crypto'], persistSource: false },
  sandbox: {
    class: 'gvisor',
    resources: { cpu: '500m', memory: '256Mi' },
    workspace: { size: '1Gi', files: [{ path: 'data', configMap: { name: 'data' } }] },
  },
});

const CONSTRAINED: AgentSpec = {
  ...PARENT,
  constraints: {
    files: 'Project',
    network: 'None',
    git: 'ReadAndBranch',
    code: 'Isolated',
    terminal: 'None',
    requireApproval: ['code:delete'],
  },
};

function childOf(change: Partial<AgentSpec> = {}): AgentSpec {
  return {
    trustPolicyRef: PARENT.trustPolicyRef,
    model: { primary: 'openai/gpt-4o' },
    prompt: { system: 'x' },
    ...change,
  };
}

function fieldsRefused(change: Partial<AgentSpec>, parent = PARENT): string[] {
  return inherits(childOf(change), parent).map(({ field }) => field);
}

const GUARD = { events: ['ToolCall' as const], tool: 'guard' };

describe('the hooks of a child', () => {
  it('the hooks of a parent run for its child, before its own', () => {
    const own = { events: ['TurnEnd' as const], tool: 'ends' };
    const parent = { ...PARENT, hooks: [GUARD] };
    assert.deepEqual(inheritedSpec(childOf(), parent).hooks, [GUARD]);
    const both = inheritedSpec(childOf({ hooks: [own, GUARD] }), parent);
    assert.deepEqual(both.hooks, [GUARD, own]);
    assert.deepEqual(inheritedSpec(both, parent).hooks, both.hooks, 'idempotent');
  });

  it('a child with more hooks than an agent may have is refused', () => {
    const hooks = Array.from({ length: 8 }, (_, index) => ({ ...GUARD, tool: `guard_${index}` }));
    assert.deepEqual(fieldsRefused({ hooks }), []);
    assert.deepEqual(fieldsRefused({ hooks }, { ...PARENT, hooks: [GUARD] }), ['spec.hooks']);
  });
});

interface SchemaNode {
  readonly properties?: Readonly<Record<string, SchemaNode>>;
  readonly items?: SchemaNode;
}

const SCHEMA = AgentSpec as unknown as SchemaNode;

/** The paths of a schema down to the first one that is in `ruled`, or to the leaves. */
function fieldsOf(node: SchemaNode, path: string, ruled: ReadonlySet<string>): string[] {
  if (ruled.has(path)) return [path];
  if (node.items !== undefined && node.items.properties !== undefined) return fieldsOf(node.items, `${path}[]`, ruled);
  if (node.properties === undefined) return [path];
  return Object.entries(node.properties).flatMap(([key, member]) =>
    fieldsOf(member, path === '' ? key : `${path}.${key}`, ruled),
  );
}

/** The paths of the objects in which a schema can get a new member. Rules of whole objects compare all their members. */
function innerPathsOf(node: SchemaNode, path = ''): string[] {
  if (node.properties === undefined || COMPARED_FIELDS.includes(path)) return [];
  const inner = Object.entries(node.properties).flatMap(([key, member]) =>
    innerPathsOf(member, path === '' ? key : `${path}.${key}`),
  );
  return [path, ...inner];
}

function withMember(spec: AgentSpec, [key, ...rest]: readonly string[]): AgentSpec {
  if (key === undefined) return { ...spec, unruled: 1 } as AgentSpec;
  const inner: unknown = Reflect.get(spec, key) ?? {};
  return { ...spec, [key]: withMember(inner as AgentSpec, rest) };
}

/** One form of asking for more than the parent has, and the field that the refusal names. */
const MORE: readonly (readonly [field: string, change: Partial<AgentSpec>, parent?: AgentSpec])[] = [
  ['spec.trustPolicyRef.name', { trustPolicyRef: { name: 'open' } }],
  ['spec.model.primary', { model: { primary: 'openai/o3' } }],
  ['spec.model.fallbacks[0]', { model: { primary: 'openai/gpt-4o', fallbacks: ['openai/o3'] } }],
  ['spec.model.maxOutputTokens', { model: { primary: 'openai/gpt-4o', maxOutputTokens: 1_001 } }],
  ['spec.model.agent', { model: { primary: 'openai/gpt-4o', agent: 'qwen' } }],
  ['spec.grants.tools[0]', { grants: { tools: ['*'] } }],
  ['spec.grants.tools[1]', { grants: { tools: ['file_read', 'shell_exec'] } }],
  ['spec.grants.network[0]', { grants: { network: ['example.org'] } }],
  ['spec.grants.network[0]', { grants: { network: ['api.example.com:80'] } }],
  ['spec.grants.network[0]', { grants: { network: ['*'] } }],
  ['spec.grants.network[0]', { grants: { network: ['127.0.0.1'] } }],
  ['spec.grants.memory.write[0]', { grants: { memory: { write: ['shared.*'] } } }],
  ['spec.grants.messages[0]', { grants: { messages: ['*'] } }],
  ['spec.grants.events.publish[0]', { grants: { events: { publish: ['orders.*'] } } }],
  ['spec.grants.events.subscribe[0]', { grants: { events: { subscribe: ['*'] } } }],
  ['spec.grants.spawn[0]', { grants: { spawn: ['work*'] } }],
  ['spec.grants.schedules', { grants: { schedules: 1 } }],
  ['spec.grants.shell[0]', { grants: { shell: ['g*'] } }],
  ['spec.grants.environment[0]', { grants: { environment: ['LANG*'] } }],
  ['spec.grants.network[0]', { grants: { network: ['a..b'] } }],
  ['spec.toolProfile', { toolProfile: 'Automation' }],
  ['spec.toolProfile', { toolProfile: 'Full' }],
  ['spec.autonomy', { autonomy: 'Semi' }],
  ['spec.autonomy', { autonomy: 'Full' }],
  ['spec.constraints.files', { constraints: { files: 'Full' } }, CONSTRAINED],
  ['spec.constraints.network', { constraints: { network: 'Allowlist' } }, CONSTRAINED],
  ['spec.constraints.git', { constraints: { git: 'Full' } }, CONSTRAINED],
  ['spec.constraints.terminal', { constraints: { terminal: 'RestrictedCommands' } }, CONSTRAINED],
  ['spec.mode', { mode: 'Full' }],
  ['spec.forge.enabled', { forge: { enabled: true } }, anAgentSpec({ model: PARENT.model })],
  ['spec.forge.modes', { forge: { enabled: true, modes: ['Compose'] } }],
  ['spec.forge.modes', { forge: { enabled: true } }],
  ['spec.forge.apis', { forge: { enabled: true, modes: ['Sandbox'], apis: ['fetch'] } }],
  ['spec.forge.persistSource', { forge: { enabled: true, modes: ['Sandbox'], persistSource: true } }],
  ['spec.grants.memory.read[0]', { grants: { memory: { read: ['*'] } } }],
  ['spec.grants.events.publish[0]', { grants: { events: { publish: ['orders'] } } }],
  ['spec.grants.events.subscribe[0]', { grants: { events: { subscribe: ['orders'] } } }],
  ['spec.grants.kill[0]', { grants: { kill: ['*'] } }],
  ['spec.model.routing.simple', { model: { primary: 'openai/gpt-4o', routing: { simple: 'openai/o3' } } }],
  ['spec.a2a', { a2a: { enabled: true } as never }],
  ['spec.children.inherit', { children: { inherit: true } }],
  ['spec.children.template', { children: { template: true } }],
  ['spec.schedule', { schedule: { mode: 'Reactive', session: 'x' } }],
  ['spec.schedule', { schedule: { mode: 'Continuous', message: 'Look.' } }],
  ['spec.priority', { priority: 'High' }],
  ['spec.priority', { priority: 'Normal' }, { ...PARENT, priority: 'Low' }],
  ['spec.limits.turns', { limits: { turns: 11 } }],
  ['spec.prompt.context.files', { prompt: { system: 'x', context: { files: ['notes.md'], memory: ['self.a'] } } }],
  ['spec.limits.steps', { limits: { steps: 31 } }],
  ['spec.limits.concurrency', { limits: { concurrency: 5 } }],
  ['spec.limits.toolTimeout', { limits: { toolTimeout: '21s' } }],
  ['spec.limits.outputCharacters', { limits: { outputCharacters: 50_001 } }],
  ['spec.quotas.tokensPerHour', { quotas: { tokensPerHour: 1_001 } }],
  ['spec.quotas.tokensPerDay', { quotas: { tokensPerDay: 10_001 } }],
  ['spec.quotas.costPerHour', { quotas: { costPerHour: '1.01' } }],
  ['spec.quotas.costPerMonth', { quotas: { costPerMonth: '9.01' } }],
  ['spec.quotas.costPerDay', { quotas: { costPerDay: '2.01' } }],
  ['spec.quotas.toolCallsPerMinute', { quotas: { toolCallsPerMinute: 11 } }],
  ['spec.quotas.networkBytesPerHour', { quotas: { networkBytesPerHour: '1.1Mi' } }],
  ['spec.sandbox.class', { sandbox: { class: 'runc' } }],
  ['spec.sandbox.resources.cpu', { sandbox: { resources: { cpu: '501m' } } }],
  ['spec.sandbox.resources.memory', { sandbox: { resources: { memory: '257Mi' } } }],
  ['spec.sandbox.workspace.size', { sandbox: { workspace: { size: '2Gi' } } }],
  [
    'spec.sandbox.workspace.files',
    { sandbox: { workspace: { files: [{ path: 'data', configMap: { name: 'secrets' } }] } } },
  ],
];

describe('what a child may have', () => {
  it('a child with the spec of its parent is within the parent', () => {
    assert.deepEqual(inherits(PARENT, PARENT), []);
    assert.deepEqual(inherits(childOf(), anAgentSpec({ model: { primary: 'openai/gpt-4o' } })), []);
  });

  it('a child within every grant of its parent is admitted', () => {
    const change: Partial<AgentSpec> = {
      grants: { tools: ['file_read', 'FILE_LIST'], network: ['api.example.com'], memory: { read: ['shared.a'] } },
      toolProfile: 'Minimal',
      autonomy: 'Locked',
      mode: 'Assist',
      forge: { enabled: true, modes: ['Sandbox'] },
      limits: { turns: 10, steps: 30 },
      quotas: { tokensPerHour: 0 },
    };
    assert.deepEqual(inherits(childOf(change), PARENT), []);
  });

  for (const [field, change, parent] of MORE) {
    it(`a child that asks for more is refused: ${field} ${JSON.stringify(change)}`, () => {
      assert.deepEqual(fieldsRefused(change, parent), [field]);
    });
  }

  it('a refusal names what the child asks for, what the parent has, and the next step', () => {
    const [refused] = inherits(childOf({ grants: { network: ['example.org'] } }), PARENT);
    assert.equal(
      refused?.message,
      'spec.grants.network[0] "example.org" exceeds the parent, which has "**.example.com"; narrow it, or extend the parent',
    );
  });

  it('a child of an agent in mode Assist has at most mode Assist', () => {
    assert.deepEqual(fieldsRefused({ mode: 'Full' }, { ...PARENT, mode: 'Assist' }), ['spec.mode']);
    assert.equal(inheritedSpec(childOf(), { ...PARENT, mode: 'Assist' }).mode, 'Assist');
  });

  it('a child has the priority of its parent unless it states a lower one', () => {
    const parent: AgentSpec = { ...PARENT, priority: 'High' };
    assert.equal(inheritedSpec(childOf(), parent).priority, 'High');
    assert.equal(inheritedSpec(childOf(), { ...PARENT, priority: 'Low' }).priority, 'Low');
    assert.deepEqual(fieldsRefused({ priority: 'Low' }, parent), []);
    assert.deepEqual(fieldsRefused({ priority: 'Critical' }, parent), ['spec.priority']);
  });

  it('a field or grant without a rule is refused', () => {
    const spec = { ...childOf({ grants: { teleport: ['*'] } as never }), wings: 2 } as never;
    assert.deepEqual(
      inherits(spec, PARENT).map(({ field }) => field),
      ['spec.grants.teleport', 'spec.wings'],
    );
    const limits = { turns: 1, haste: 9 } as never;
    assert.deepEqual(fieldsRefused({ limits }), ['spec.limits.haste']);
  });

  for (const path of innerPathsOf(SCHEMA)) {
    it(`a member that is new in spec${path === '' ? '' : `.${path}`} of a child is refused`, () => {
      const child = withMember(structuredClone(childOf()), path === '' ? [] : path.split('.'));
      const fields = inherits(child, PARENT).map(({ field }) => field);
      assert.ok(fields.includes(`spec.${path === '' ? '' : `${path}.`}unruled`), fields.join(', '));
    });
  }

  it('every field of an Agent has a rule, and a case in which a child is refused unless the field is free', () => {
    const ruled = new Set([...FREE_FIELDS, ...COMPARED_FIELDS]);
    const fields = fieldsOf(SCHEMA, '', ruled);
    assert.deepEqual(
      fields.filter((field) => !ruled.has(field)),
      [],
    );
    const known = new Set(fields);
    assert.deepEqual(
      [...ruled].filter((field) => !known.has(field)),
      [],
      'rules of fields that no Agent has',
    );
    const refused = MORE.map(([field]) => field.replace(/^spec\./, '').replace(/\[\d+\]$/, ''));
    const isCase = (one: string, field: string): boolean =>
      one === field || one.startsWith(`${field}.`) || field.startsWith(`${one}[`);
    const uncovered = COMPARED_FIELDS.filter((field) => !refused.some((one) => isCase(one, field)));
    assert.deepEqual(uncovered, []);
  });

  it('a list that exceeds its maximum with the entries of the parent is refused', () => {
    const requireApproval = Array.from({ length: 100 }, (_, index) => `example.com/crm:action${index}`);
    assert.deepEqual(fieldsRefused({ constraints: { requireApproval } }, CONSTRAINED), [
      'spec.constraints.requireApproval',
    ]);
    const denyTools = Array.from({ length: 100 }, (_, index) => `tool_${index}`);
    assert.deepEqual(fieldsRefused({ denyTools }), ['spec.denyTools']);
  });

  it('a manifest that exhausts the budget of the comparisons is refused', () => {
    const hard = (seed: number) => Array.from({ length: 100 }, (_, index) => `*${'ab*'.repeat(40)}${seed}${index}*`);
    const parent = anAgentSpec({ grants: { tools: hard(1) } });
    // Without the budget, the comparison does not end.
    const refused = inherits({ ...parent, grants: { tools: hard(2) } }, parent);
    assert.equal(refused.length, 100);
  });
});

describe('what a child takes over', () => {
  it('denials, pinned arguments and limits of the parent hold for the child', () => {
    const spec = inheritedSpec(childOf({ denyTools: ['x'], limits: { turns: 3 } }), PARENT);
    assert.deepEqual(spec.denyTools, ['x', 'file_delete']);
    assert.deepEqual(spec.arguments, PARENT.arguments);
    assert.deepEqual(spec.limits, { turns: 3, toolTimeout: '20s' });
    assert.deepEqual(spec.quotas, PARENT.quotas);
    assert.deepEqual(spec.sandbox, {
      class: 'gvisor',
      resources: { cpu: '500m', memory: '256Mi' },
      workspace: { size: '1Gi' },
    });
    assert.equal(spec.autonomy, 'Supervised');
    assert.equal(spec.model.maxOutputTokens, 1_000);
  });

  it('a child has the constraints of its parent and stricter ones of its own', () => {
    assert.deepEqual(inheritedSpec(childOf(), CONSTRAINED).constraints, CONSTRAINED.constraints);
    const own = { files: 'Workspace', requireApproval: ['vcs', 'code:delete'] } as const;
    const child = childOf({ constraints: { ...own, requireApproval: [...own.requireApproval] } });
    assert.deepEqual(inherits(child, CONSTRAINED), []);
    const spec = inheritedSpec(child, CONSTRAINED);
    assert.deepEqual(spec.constraints, { ...CONSTRAINED.constraints, ...own });
    assert.deepEqual(inheritedSpec(spec, CONSTRAINED).constraints, spec.constraints);
    const [looser] = inherits(childOf({ constraints: { network: 'Open' } }), CONSTRAINED);
    assert.match(
      looser?.message ?? '',
      /^spec\.constraints\.network Open exceeds the parent, which has None; narrow it/,
    );
    assert.deepEqual(
      inherits(childOf({ constraints: { network: 'Open' } }), PARENT),
      [],
      'the policy decides for both',
    );
  });

  it('a specialist and a nested manifest without constraints have those of their parent', () => {
    const admission = admitChild(
      { spec: childOf() },
      { parent: { name: 'lead', spec: CONSTRAINED }, policy: {}, template: undefined, children: 0, total: 0 },
    );
    assert.ok('spec' in admission);
    assert.deepEqual(admission.spec.constraints, CONSTRAINED.constraints);
  });

  it('a child takes over no grant and no right to forge', () => {
    const spec = inheritedSpec(childOf(), PARENT);
    assert.deepEqual([spec.grants, spec.forge], [undefined, undefined]);
  });

  it('taking over twice is the same as once', () => {
    const once = inheritedSpec(childOf({ denyTools: ['x'] }), PARENT);
    assert.deepEqual(inheritedSpec(once, PARENT), once);
  });
});
