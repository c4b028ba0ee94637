import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { TEXT_SYSTEM } from '../../../src/agent/tools/generate-text.ts';
import { forgeRequest, WORKED_FORGES } from '../../support/promotion/worked-forges.ts';
import { ROOT } from './installed-cluster.ts';

/* The scripted answers of the agents that forge the worked forges, use them, and call them when others share them. */

export interface Rule {
  name: string;
  when?: { system?: string; [condition: string]: unknown };
  answer: Record<string, unknown>;
}

interface Call {
  id?: string;
  name: string;
  arguments: object;
}

/** The worked forge that needs the network; it has a session of its own, because its answers are untrusted content. */
export const FETCHING = 'check_http_status';
export const RISING: readonly string[] = Object.keys(WORKED_FORGES).filter((name) => name !== FETCHING);
/** A composed tool that calls a composed tool. */
export const NESTED = 'titled_research';
const USES = WORKED_FORGES[FETCHING]?.length ?? 0;
const SMITH = 'You are smith';

/** The rules of `file`, before them `more`, those of the worked forges, and the judge and reviewers of the quick start. */
export async function withForges(file: string, more: readonly Rule[] = []): Promise<string> {
  const rulesOf = async (path: string) => (parse(await readFile(path, 'utf8')) as { rules: Rule[] }).rules;
  const quickstart = await rulesOf(join(ROOT, 'manifests/quickstart/replay.yaml'));
  const reviewers = quickstart.filter(({ when }) => when?.system?.startsWith('You ') === true);
  const forging = [...(await smith()), ...caller(), ...guarded(), ...more];
  const rules = [...reviewers, generatedText, ...forging, ...(await rulesOf(file))];
  return stringify({ rules }, { aliasDuplicateObjects: false });
}

const generatedText: Rule = {
  name: 'generated text',
  when: { system: TEXT_SYSTEM },
  answer: { text: 'a text about {{user}}' },
};

async function smith(): Promise<Rule[]> {
  const forges = await Promise.all(RISING.map(async (name) => forgeCall(await forgeRequest(name))));
  const uses = Array.from({ length: USES }, (_, index) => [
    calls(
      `use ${index + 1}`,
      SMITH,
      RISING.map((name) => useOf(name, index)),
    ),
    calls(`fetch ${index + 1}`, SMITH, [useOf(FETCHING, index)]),
  ]);
  return [
    calls('forge the tools', SMITH, forges),
    calls('forge the fetching tool', SMITH, [forgeCall(await forgeRequest(FETCHING))]),
    calls('forge the nested tool', SMITH, [
      forgeCall(nestedTool()),
      { name: NESTED, arguments: { topic: 'Nested Calls' } },
    ]),
    ...uses.flat(),
    // A result of the last turn answers the message: the replies show what the tools gave.
    { name: 'smith has finished', when: { system: SMITH, last: 'tool' }, answer: { text: '{{lastTool | json}}' } },
  ];
}

/** Two calls of the answer have one ID, as some providers send them. */
function caller(): Rule[] {
  const id = 'call_0';
  const shared: Call[] = [
    ...RISING.map((name) => ({ ...useOf(name, 0), id: name })),
    { id, name: 'slugify', arguments: { text: 'The First' } },
    { id, name: 'slugify', arguments: { text: 'The Second' } },
  ];
  const names = [...RISING, id, `${id}_2`];
  const text = names.map((name) => `${name}={{toolCall.${name} | json}}`).join('\n');
  return [
    calls('call what is shared', 'You are caller', shared),
    { name: 'caller has finished', when: { system: 'You are caller', turn: 2 }, answer: { text } },
  ];
}

function guarded(): Rule[] {
  const system = 'You are guarded';
  const chain = {
    name: 'listed',
    description: 'Lists the files of a folder.',
    inputSchema: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] },
    implementation: {
      mode: 'compose',
      steps: [{ name: 'list', tool: 'file_list', inputMapping: { path: '$input.path' } }],
    },
    testCases: [{ input: { path: '.' } }],
  };
  return [
    calls('list the files', system, [{ name: 'file_list', arguments: { path: '.' } }]),
    calls('forge a guarded chain', system, [forgeCall(chain)]),
    { name: 'guarded has finished', when: { system, turn: 2 }, answer: { text: '{{lastTool | json}}' } },
  ];
}

/** The first answer to a message. */
export function calls(message: string, system: string, toolCalls: readonly Call[]): Rule {
  return { name: `${system}: ${message}`, when: { system, lastUser: message, turn: 1 }, answer: { toolCalls } };
}

export function forgeCall(request: object): Call {
  return { name: 'forge_tool', arguments: request };
}

function useOf(name: string, index: number): Call {
  return { name, arguments: WORKED_FORGES[name]?.[index] ?? {} };
}

function nestedTool() {
  const research = 'research_and_summarize';
  return {
    name: NESTED,
    description: 'Looks a topic up, and makes an address of what was found.',
    inputSchema: { type: 'object', properties: { topic: { type: 'string' } }, required: ['topic'] },
    implementation: {
      mode: 'compose',
      steps: [
        { name: 'research', tool: research, inputMapping: { topic: '$input.topic' } },
        { name: 'address', tool: 'slugify', inputMapping: { text: '$prev.text' } },
      ],
    },
    testCases: [
      {
        input: { topic: 'forging' },
        fixtures: [{ tool: research, output: { text: 'Two Words', output: 'Two Words' } }],
        expectedOutput: { slug: 'two-words' },
      },
    ],
  };
}
