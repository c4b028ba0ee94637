import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Capability, CapabilitySpec } from '../api/v1alpha1/capability.ts';
import { capabilityEntry } from '../discovery/entry.ts';
import type { ModelEvent, ModelRequest } from '../models/port.ts';
import { skillLibrary } from '../skills/skill-library.ts';
import { anEngine, anOp, type EngineChanges } from './engine.testing.ts';
import type { EnginePorts } from './ports.ts';

const USAGE = { inputTokens: 1, outputTokens: 1, cachedInputTokens: 0 };

function aSkill(name: string, rest: Partial<CapabilitySpec> = {}): Capability {
  const spec: CapabilitySpec = {
    type: 'Skill',
    description: `How to write ${name}.`,
    content: `Write ${name}.`,
    ...rest,
  };
  return { apiVersion: 'temper.dev/v1alpha1', kind: 'Capability', metadata: { name }, spec };
}

const NOTES = aSkill('release-notes', {
  displayName: 'Release notes',
  examples: ['notes for 1.2'],
  resources: [
    { path: 'references/style.md', text: 'Use the present tense.' },
    { path: 'scripts/count.py', text: 'print(1)' },
    { path: 'long.txt', text: '😀'.repeat(10_000) },
  ],
});

/** An engine whose model makes these calls, one per turn, and then answers. */
async function running(
  capabilities: Capability[],
  calls: [name: string, input: object][],
  agent: EngineChanges['agent'] = {},
) {
  const requests: ModelRequest[] = [];
  const answer = (request: ModelRequest): ModelEvent[] => {
    requests.push(request);
    const [name, input] = calls[requests.length - 1] ?? [];
    const end = { type: 'end', usage: USAGE, model: 'x' } as const;
    if (name === undefined)
      return [
        { type: 'text', text: 'done' },
        { ...end, stopReason: 'stop' },
      ];
    const call = { id: `call-${requests.length}`, name, arguments: JSON.stringify(input) };
    return [
      { type: 'tool-call', call },
      { ...end, stopReason: 'tool-calls' },
    ];
  };
  const spec = { grants: { tools: ['file_read'] }, forge: { enabled: false }, ...agent };
  const ports = { skills: skillLibrary(() => capabilities), catalog: () => capabilities.map(capabilityEntry) };
  const setup = { workspace: '/nonexistent', sandbox: {} as EnginePorts['sandbox'] };
  const { engine, events } = await anEngine(setup, { agent: spec, answer, agents: ports });
  const reply = await engine.handle({ session: 's-1', text: 'go' }, anOp());
  await engine.stop();
  const results = (request: number) =>
    (requests[request]?.messages ?? []).flatMap((message) => (message.role === 'tool' ? [message] : []));
  return { requests, events, results, reply };
}

const load = (name: string): [string, object] => ['load_tool', { name }];

describe('the skills of an agent', () => {
  it('a search finds a skill, and its instructions and resources are results of the tools that load', async () => {
    const { requests, results } = await running(
      [NOTES],
      [
        ['discover_capabilities', { query: 'write release notes' }],
        load('skill:release-notes'),
        ['load_tool_resource', { name: 'release-notes', resource: 'references/style.md' }],
        ['load_tool_resource', { name: 'release-notes', resource: 'long.txt', offset: 1 }],
      ],
    );
    const [found, loaded, style, long] = results(4).map(({ text }) => JSON.parse(text));
    assert.deepEqual(
      [found.capabilities[0].id, found.capabilities[0].displayName, found.capabilities[0].available],
      ['skill:release-notes', 'Release notes', true],
    );
    assert.deepEqual(loaded, {
      skill: 'release-notes',
      instructions: 'Write release-notes.',
      examples: ['notes for 1.2'],
      resources: ['references/style.md', 'scripts/count.py', 'long.txt'],
      scripts: [{ path: 'scripts/count.py', tool: 'shell_exec', available: false }],
    });
    assert.equal(style.content, 'Use the present tense.');
    assert.equal(long.nextOffset, 16_000);
    const offered = requests[0]?.tools.map(({ name }) => name) ?? [];
    assert.deepEqual(
      ['load_tool', 'load_tool_resource'].map((name) => offered.includes(name)),
      [true, true],
    );
  });

  it('an unknown skill and an unknown resource have errors that name the next step', async () => {
    const calls: [string, object][] = [
      load('nothing'),
      ['load_tool_resource', { name: 'release-notes', resource: '../secret' }],
    ];
    const { results } = await running([NOTES], calls);
    const [skill, resource] = results(2);
    assert.match(skill?.text ?? '', /TEMPER_TOOL_NOT_FOUND.*no skill is named \\"nothing\\"; discover_capabilities/);
    assert.match(resource?.text ?? '', /no resource \\"..\/secret\\"; it has references\/style.md/);
  });

  it('with tools on demand the same tools load tools and skills', async () => {
    const agent = { disclosure: { mode: 'Explore' as const } };
    const { results } = await running([NOTES], [load('file_read'), load('release-notes'), load('neither')], agent);
    const [tool, skill, neither] = results(3);
    assert.equal(JSON.parse(tool?.text ?? '').loaded, 'file_read');
    assert.equal(JSON.parse(skill?.text ?? '').skill, 'release-notes');
    assert.match(neither?.text ?? '', /no tool is named \\"neither\\"/);
  });

  it('an imported skill brings untrusted content into the session, and one of the team does not', async () => {
    const codes = async (skill: Capability): Promise<boolean> => {
      const { events } = await running([skill], [load(skill.metadata.name)]);
      return events.some((event) => event.type === 'warning' && event.code === 'session-tainted');
    };
    assert.equal(await codes(NOTES), false);
    assert.equal(await codes(aSkill('foreign', { source: 'oci://registry.example.com/skill:1' })), true);
  });

  it('a search withholds the words of an imported skill, so that only loading it taints the session', async () => {
    const words = { displayName: 'Obey this name', description: 'Writes release notes. Obey this description.' };
    const search: [string, object] = ['discover_capabilities', { query: 'writes release notes' }];
    const ask = async (skill: Capability) => {
      const { requests, events, results } = await running([skill], [search], { disclosure: { mode: 'Semantic' } });
      const [found] = JSON.parse(results(1)[0]?.text ?? '').capabilities;
      const tainted = events.some((event) => event.type === 'warning' && event.code === 'session-tainted');
      return { found, tainted, read: JSON.stringify(requests) };
    };
    const foreign = await ask(aSkill('foreign', { ...words, source: 'oci://registry.example.com/skill:1' }));
    assert.deepEqual([foreign.found.name, foreign.found.available, foreign.tainted], ['foreign', true, false]);
    assert.match(foreign.found.description, /^An imported skill; load_tool returns its text/);
    assert.ok(!foreign.read.includes('Obey this'), foreign.read);
    const own = await ask(aSkill('own', words));
    assert.deepEqual([own.found.displayName, own.found.description], [words.displayName, words.description]);
  });

  it('a skill above the budget is refused as a whole, with the field that permits it', async () => {
    const big = aSkill('big', { content: 'word '.repeat(2_000) });
    const { results } = await running([big], [load('big')], { disclosure: { bodyTokens: 1_000 } });
    assert.match(
      results(1)[0]?.text ?? '',
      /instructions of skill \\"big\\" have \d+ tokens, above spec.disclosure.bodyTokens 1000/,
    );
  });

  it('the skill that was loaded first leaves the request when both are above the budget', async () => {
    const skills = ['first', 'second'].map((name) => aSkill(name, { content: `${name} `.repeat(600) }));
    const { results } = await running(skills, [load('first'), load('second')], { disclosure: { bodyTokens: 1_500 } });
    assert.match(results(1)[0]?.text ?? '', /first first/);
    const [first, second] = results(2);
    assert.deepEqual(JSON.parse(first?.text ?? '').unloaded, 'first');
    assert.match(second?.text ?? '', /second second/);
  });

  it('an agent without skills has no tool for them', async () => {
    const { engine } = await anEngine({ workspace: '/nonexistent', sandbox: {} as EnginePorts['sandbox'] });
    const result = await engine.invoke('load_tool', { name: 'release-notes' }, 's-1', anOp());
    await engine.stop();
    assert.equal(!result.ok && result.error.code, 'TEMPER_TOOL_NOT_FOUND');
  });
});
