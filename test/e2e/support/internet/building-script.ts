import { namesInside } from '../../../support/egress/inside-addresses.ts';
import { FORGED_REDIRECTS } from '../../../support/egress/forged-urls.ts';
import { calls, type Rule } from '../forging-script.ts';
import { PRIVATE_REPOSITORY_URL, PUBLIC_ADDRESS, REPOSITORY_URL } from './addresses.ts';

/* The scripted answers of the agent that works on a repository. */

export const BUILD = 'add three lines to the repository';
export const PUSH = 'push to the private repository';
export const PUSHED_BRANCH = 'agents/added';
const SYSTEM = 'You are builder';
const URLS_PER_MESSAGE = 20;

const STEPS = {
  cloned: ['git_clone', { url: REPOSITORY_URL, folder: 'tools', depth: 2 }],
  written: ['file_write', { path: 'tools/lines.txt', text: 'one\ntwo\nthree\n' }],
  counted: ['shell_exec', { command: 'wc', args: ['-l', 'lines.txt'], cwd: 'tools' }],
  refused: ['shell_exec', { command: 'git', args: ['status'], cwd: 'tools' }],
  committed: ['git_commit', { repository: 'tools', message: 'Add three lines', paths: ['lines.txt'] }],
  fetched: ['git_fetch', { repository: 'tools', url: REPOSITORY_URL, branch: 'main' }],
  logged: ['git_log', { repository: 'tools' }],
  computed: ['code_run', { code: 'return input.lines * 2;', input: { lines: 3 } }],
  read: ['web_fetch', { url: 'https://api.example.com/page' }],
} as const;
const PUSH_TO = { repository: 'private', url: PRIVATE_REPOSITORY_URL, commit: '{{toolCall.prepared.commit}}' };
const PUSH_STEPS = {
  opened: ['git_clone', { url: PRIVATE_REPOSITORY_URL, folder: 'private' }],
  changed: ['file_write', { path: 'private/added.txt', text: 'added\n' }],
  prepared: ['git_commit', { repository: 'private', message: 'Add a file', paths: ['added.txt'] }],
  pushed: ['git_push', { ...PUSH_TO, branch: PUSHED_BRANCH }],
  repeated: ['git_push', { ...PUSH_TO, branch: PUSHED_BRANCH }],
  refused: ['git_push', { ...PUSH_TO, branch: 'main' }],
  foreign: ['git_push', { ...PUSH_TO, url: REPOSITORY_URL, branch: PUSHED_BRANCH }],
} as const;
type Steps = Readonly<Record<string, readonly [name: string, input: object]>>;

/** No repository of these URLs may be reached, nor resolved where the policy does not permit the name. */
const REFUSED: readonly string[] = [
  ...Object.keys(namesInside('example.com', PUBLIC_ADDRESS)).map((name) => `https://${name}/tools.git`),
  ...FORGED_REDIRECTS.map((url) => `https://moved.example.com/moved/${encodeURIComponent(url)}`),
];
export const REFUSED_CLONES: readonly (readonly string[])[] = Array.from(
  { length: Math.ceil(REFUSED.length / URLS_PER_MESSAGE) },
  (_, index) => REFUSED.slice(index * URLS_PER_MESSAGE, (index + 1) * URLS_PER_MESSAGE),
);
export const refusedClones = (index: number): string => `clone what is inside, part ${index}`;

export function buildingRules(): Rule[] {
  return [...stepRules(BUILD, STEPS), ...stepRules(PUSH, PUSH_STEPS), ...REFUSED_CLONES.flatMap(refusalRules)];
}

/** The steps in turns of their own, because the calls of one answer run at the same time. */
function stepRules(lastUser: string, steps: Steps): Rule[] {
  const turns = Object.entries(steps).map(([id, [name, input]], index) => ({
    name: `builder: ${lastUser}: ${id}`,
    when: { system: SYSTEM, lastUser, turn: index + 1 },
    answer: { toolCalls: [{ id, name, arguments: input }] },
  }));
  const said = Object.keys(steps)
    .map((id) => `${id}={{toolCall.${id} | json}}`)
    .join('\n');
  return [
    ...turns,
    { name: `builder: ${lastUser}`, when: { system: SYSTEM, lastUser, last: 'tool' }, answer: { text: said } },
  ];
}

function refusalRules(urls: readonly string[], part: number): Rule[] {
  const message = refusedClones(part);
  const clones = urls.map((url, index) => ({
    id: `clone-${part}-${index}`,
    name: 'git_clone',
    arguments: { url, folder: `inside-${part}-${index}` },
  }));
  const text = clones.map(({ id }) => `{{toolCall.${id} | json}}`).join('\n');
  return [
    calls(message, SYSTEM, clones),
    {
      name: `builder was refused ${part}`,
      when: { system: SYSTEM, lastUser: message, last: 'tool' },
      answer: { text },
    },
  ];
}

/** What the agent says that each step gave, as JSON. */
export function stepsIn(reply: string): Record<string, string> {
  const lines = reply.split('\n').map((line) => /^(\w+)=(.*)$/.exec(line));
  return Object.fromEntries(lines.flatMap((line) => (line === null ? [] : [[line[1] ?? '', line[2] ?? '']])));
}
