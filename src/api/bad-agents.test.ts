import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { AGENT, type BadText, POLICY, itRefusesTexts, manifestReader } from './bad-manifests.testing.ts';

const CASES: readonly BadText[] = [
  {
    name: 'a field at the wrong level',
    text: `${AGENT}  tokensPerHour: 5\n`,
    line: 8,
    field: 'spec.tokensPerHour',
    rule: 'unknown-field',
    fix: /spec\.quotas\.tokensPerHour/,
  },
  {
    name: 'an unknown field',
    text: `${AGENT}  zzz: 5\n`,
    line: 8,
    field: 'spec.zzz',
    rule: 'unknown-field',
    fix: /known fields: description, trustPolicyRef/,
  },
  {
    name: 'a mistyped quota',
    text: `${AGENT}  quotas: {tokenPerHour: 5}\n`,
    line: 8,
    field: 'spec.quotas.tokenPerHour',
    rule: 'unknown-field',
    fix: /did you mean "tokensPerHour"/,
  },
  {
    name: 'a quota with a suffix',
    text: `${AGENT}  quotas:\n    tokensPerHour: "100k"\n`,
    line: 9,
    field: 'spec.quotas.tokensPerHour',
    rule: 'type',
    fix: /tokensPerHour: 100000$/,
  },
  {
    name: 'money as a float',
    text: `${AGENT}  quotas:\n    costPerDay: 2.00\n`,
    line: 9,
    field: 'spec.quotas.costPerDay',
    rule: 'type',
    fix: /costPerDay: "2\.00"/,
  },
  {
    name: 'a negative quota',
    text: `${AGENT}  quotas:\n    tokensPerDay: -1\n`,
    line: 9,
    field: 'spec.quotas.tokensPerDay',
    rule: 'range',
    fix: /at least 0/,
  },
  {
    name: 'a duration without a unit',
    text: `${AGENT}  idle: {scaleToZeroAfter: 30}\n`,
    line: 8,
    field: 'spec.idle.scaleToZeroAfter',
    rule: 'type',
    fix: /such as 250ms, 30s/,
  },
  {
    name: 'a persistent agent that returns a value',
    text: `${AGENT}  schedule: {mode: Continuous, persistent: true, message: Go on.}\n  returns: '{"type": "object"}'\n`,
    line: 9,
    field: 'spec.returns',
    rule: 'persistent-returns',
    fix: /remove spec.returns/,
  },
  {
    name: 'a persistent schedule of another mode',
    text: `${AGENT}  schedule: {mode: Periodic, cron: "0 9 * * *", persistent: true, message: Go on.}\n`,
    line: 8,
    field: 'spec.schedule.persistent',
    rule: 'schedule-mode',
    fix: /mode: Continuous/,
  },
  {
    name: 'a persistent schedule with an interval',
    text: `${AGENT}  schedule: {mode: Continuous, persistent: true, interval: 5m, message: Go on.}\n`,
    line: 8,
    field: 'spec.schedule.interval',
    rule: 'schedule-mode',
    fix: /remove one/,
  },
  {
    name: 'sessions that are closed before an hour has passed',
    text: `${AGENT}  idle: {closeSessionsAfter: 10m}\n`,
    line: 8,
    field: 'spec.idle.closeSessionsAfter',
    rule: 'range',
    fix: /from 1h to 4320h/,
  },
  {
    name: 'a constraint about an unknown action',
    text: `${AGENT}  constraints: {requireApproval: [code:wrte]}\n`,
    line: 8,
    field: 'spec.constraints.requireApproval[0]',
    rule: 'action-type',
    fix: /did you mean "code:write"/,
  },
  {
    name: 'an unknown value of a constraint',
    text: `${AGENT}  constraints: {network: none}\n`,
    line: 8,
    field: 'spec.constraints.network',
    rule: 'enum',
    fix: /None/,
  },
  {
    name: 'a file of the context outside the workspace',
    text: AGENT.replace('  prompt: {', '  prompt: {context: {files: [../secret]}, '),
    line: 7,
    field: 'spec.prompt.context.files[0]',
    rule: 'pattern',
    fix: /below the workspace/,
  },
  {
    name: 'a memory key of the context that the agent may not read',
    text: AGENT.replace('  prompt: {', '  prompt: {context: {memory: [self.profile]}, '),
    line: 7,
    field: 'spec.prompt.context.memory[0]',
    rule: 'context-grant',
    fix: /grants\.memory\.read/,
  },
  {
    name: 'a duration in words',
    text: `${AGENT}  idle: {scaleToZeroAfter: 30 min}\n`,
    line: 8,
    field: 'spec.idle.scaleToZeroAfter',
    rule: 'pattern',
    fix: /such as 250ms, 30s/,
  },
  {
    name: 'milli-bytes of memory',
    text: `${AGENT}  sandbox: {resources: {memory: 512m}}\n`,
    line: 8,
    field: 'spec.sandbox.resources.memory',
    rule: 'pattern',
    fix: /128Mi/,
  },
  {
    name: 'a memory quantity of 0',
    text: `${AGENT}  sandbox: {resources: {memory: "0"}}\n`,
    line: 8,
    field: 'spec.sandbox.resources.memory',
    rule: 'range',
    fix: /more than 0/,
  },
  {
    name: 'a temperature out of range',
    text: AGENT.replace('mini}', 'mini, temperature: "3"}'),
    line: 6,
    field: 'spec.model.temperature',
    rule: 'range',
    fix: /"0" to "2"/,
  },
  {
    name: 'a string instead of a list',
    text: `${AGENT}  grants:\n    tools: file_read\n`,
    line: 9,
    field: 'spec.grants.tools',
    rule: 'type',
    fix: /tools: \[/,
  },
  {
    name: 'a path pattern with ".."',
    text: `${AGENT}  arguments:\n    - {tool: x, argument: path, allow: ["a/../../etc"]}\n`,
    line: 9,
    field: 'spec.arguments[0].allow[0]',
    rule: 'pattern',
    fix: /patterns\.md/,
  },
  {
    name: 'defaults of a tool that are no object',
    text: `${AGENT}  toolSettings:\n    - {name: text_search, defaults: "[1]"}\n`,
    line: 9,
    field: 'spec.toolSettings[0].defaults',
    rule: 'json-text',
    fix: /an object as JSON text/,
  },
  {
    name: 'a timeout of a tool above that of all tools',
    text: `${AGENT}  toolSettings:\n    - {name: text_search, timeout: 2m}\n`,
    line: 9,
    field: 'spec.toolSettings[0].timeout',
    rule: 'range',
    fix: /limits.toolTimeout/,
  },
  {
    name: 'an empty pattern',
    text: `${AGENT}  grants: {tools: [a, ""]}\n`,
    line: 8,
    field: 'spec.grants.tools[1]',
    rule: 'length',
    fix: /at least 1/,
  },
  {
    name: 'a grant that denyTools denies',
    text: `${AGENT}  grants: {tools: [csv_drop]}\n  denyTools: ["csv_*"]\n`,
    line: 8,
    field: 'spec.grants.tools[0]',
    rule: 'overlap',
    fix: /remove it/,
  },
  {
    name: 'an enum in the wrong case',
    text: `${AGENT}  autonomy: full\n`,
    line: 8,
    field: 'spec.autonomy',
    rule: 'enum',
    fix: /did you mean Full/,
  },
  {
    name: 'a fallback that equals the primary model',
    text: AGENT.replace('mini}', 'mini, fallbacks: [openai/gpt-4o-mini]}'),
    line: 6,
    field: 'spec.model.fallbacks[0]',
    rule: 'duplicate-item',
    fix: /another model/,
  },
  {
    name: 'host functions without mode Sandbox',
    text: `${AGENT}  forge: {enabled: true, apis: [crypto]}\n`,
    line: 8,
    field: 'spec.forge.apis',
    rule: 'apis-need-sandbox',
    fix: /add Sandbox/,
  },
  {
    name: 'a missing prompt',
    text: AGENT.replace(/ {2}prompt.*\n/, ''),
    line: 4,
    field: 'spec.prompt',
    rule: 'required',
    fix: /add prompt/,
  },
  {
    name: 'an empty spec',
    text: 'apiVersion: temper.dev/v1alpha1\nkind: Agent\nmetadata: {name: a}\nspec:\n',
    line: 4,
    field: 'spec',
    rule: 'type',
    fix: /give spec a value/,
  },
  {
    name: 'no spec',
    text: 'apiVersion: temper.dev/v1alpha1\nkind: Agent\nmetadata: {name: a}\n',
    line: 1,
    field: 'spec',
    rule: 'required',
    fix: /add spec/,
  },
  {
    name: 'no name',
    text: AGENT.replace('{name: a}', '{}'),
    line: 3,
    field: 'metadata.name',
    rule: 'required',
    fix: /add name/,
  },
  {
    name: 'a name with capital letters',
    text: AGENT.replace('{name: a}', '{name: Analyst}'),
    line: 3,
    field: 'metadata.name',
    rule: 'pattern',
    fix: /lower-case/,
  },
  {
    name: 'a name with dots',
    text: AGENT.replace('{name: a}', '{name: a.b}'),
    line: 3,
    field: 'metadata.name',
    rule: 'name',
    fix: /shorter/,
  },
  {
    name: 'an unsupported version',
    text: AGENT.replace('v1alpha1', 'v1'),
    line: 1,
    field: 'apiVersion',
    rule: 'api-version',
    fix: /temper\.dev\/v1alpha1/,
  },
  {
    name: 'a mistyped group',
    text: AGENT.replace('temper.dev', 'temper.de').replace('Agent', 'Agnt'),
    line: 1,
    field: 'apiVersion',
    rule: 'api-version',
    fix: /temper\.dev/,
  },
  {
    name: 'a mistyped kind',
    text: AGENT.replace('Agent', 'Agnet'),
    line: 2,
    field: 'kind',
    rule: 'kind',
    fix: /did you mean Agent/,
  },
  {
    name: 'no kind',
    text: AGENT.replace('kind: Agent\n', ''),
    line: 1,
    field: 'kind',
    rule: 'required',
    fix: /one of Agent/,
  },
  {
    name: 'a list instead of an object',
    text: '- a\n- b\n',
    line: 1,
    field: '',
    rule: 'type',
    fix: /one object per document/,
  },
  {
    name: 'a string instead of an object',
    text: 'hello\n',
    line: 1,
    field: '',
    rule: 'type',
    fix: /one object per document/,
  },
  {
    name: 'a merge key',
    text: `${AGENT}  <<: {suspend: true}\n`,
    line: 8,
    field: 'spec["<<"]',
    rule: 'unknown-field',
    fix: /known fields/,
  },
  {
    name: 'a key that would set the prototype',
    text: `${AGENT}  __proto__: {suspend: true}\n`,
    line: 8,
    field: 'spec.__proto__',
    rule: 'unknown-field',
    fix: /known fields/,
  },
  {
    name: 'a duplicate key',
    text: `${AGENT}  suspend: true\n  suspend: false\n`,
    line: 9,
    field: 'suspend',
    rule: 'duplicate-key',
    fix: /keep one/,
  },
  { name: 'tabs', text: AGENT.replace('  model', '\tmodel'), line: 6, field: '', rule: 'yaml-tabs', fix: /spaces/ },
];

describe('an invalid manifest', () => {
  const read = manifestReader();
  itRefusesTexts(CASES, read);

  it('an invalid manifest reports all its problems in line order', async () => {
    const text = `${AGENT}  autonomy: full\n  quotas: {tokensPerHour: "1k", costPerDay: 1}\n  grants: {tools: [csv_drop]}\n  denyTools: ["csv_*"]\n`;
    const problems = await read(text);
    assert.deepEqual(
      problems.map(({ line, field }) => [line, field]),
      [
        [8, 'spec.autonomy'],
        [9, 'spec.quotas.tokensPerHour'],
        [9, 'spec.quotas.costPerDay'],
        [10, 'spec.grants.tools[0]'],
      ],
    );
  });

  it('an invalid manifest reports a grant that exceeds the policy with the message of the condition', async () => {
    const [problem] = await read(`${AGENT}  grants: {network: ["*"]}\n---\n${POLICY}  {}\n`);
    assert.equal(problem?.message, 'grants.network "*" exceeds policy "p" (egress.allow is empty)');
  });

  it('an invalid manifest reports a looser constraint with what the policy gives', async () => {
    const messageOf = async (agent: string, policy: string): Promise<string | undefined> =>
      (await read(`${AGENT}  constraints: ${agent}\n---\n${POLICY}${policy}`))[0]?.message;
    assert.equal(
      await messageOf('{git: Full}', '  constraints: {git: LocalOnly}\n'),
      'constraints.git "Full" exceeds policy "p" (constraints.git is LocalOnly; an agent may only be stricter)',
    );
    assert.equal(
      await messageOf('{network: Open}', '  level: {initial: sandboxed, ceiling: restricted}\n'),
      'constraints.network "Open" exceeds policy "p" (its ceiling restricted has network Allowlist; an agent may only be stricter)',
    );
    const all = 'git: Full, code: Isolated, terminal: None, requireApproval: []';
    const level = `{name: clerk, base: standard, categories: [], constraints: {files: Workspace, network: None, ${all}}}`;
    assert.match(
      (await messageOf('{files: Project}', `  level: {ceiling: clerk}\n  levels: [${level}]\n`)) ?? '',
      /its ceiling clerk has files Workspace/,
    );
    assert.equal(
      await messageOf('{network: Open, git: Full, terminal: RestrictedCommands, files: Project}', '  {}\n'),
      undefined,
    );
    const custom = '  actions: [{name: "example.com/crm:refund"}]\n';
    assert.equal(await messageOf('{requireApproval: [code, example.com/crm]}', custom), undefined);
  });

  it('an invalid manifest with more schema violations than the limit does not break the cross-field checks', async () => {
    const many = Array.from({ length: 200 }, (_, at) => `  x${at}: 1\n`).join('');
    const problems = await read(`${AGENT}${many}  grants: {tools: [5, {}], network: 5}\n  denyTools: [[1]]\n`);
    assert.equal(problems.length, 100);
  });

  it('an invalid manifest reports at most 100 problems', async () => {
    const problems = await read(`${AGENT}${Array.from({ length: 5000 }, (_, at) => `  x${at}: 1\n`).join('')}`);
    assert.equal(problems.length, 100);
  });
});
