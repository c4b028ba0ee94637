import { namesInside } from '../../../support/egress/inside-addresses.ts';
import { FORGED_REDIRECTS, FORGED_URLS } from '../../../support/egress/forged-urls.ts';
import type { Rule } from '../forging-script.ts';
import { PRIVATE_REPOSITORY_URL, PUBLIC_ADDRESS, REPOSITORY_URL } from './addresses.ts';
import { batches, batchRules, stepRules, type Steps } from './scripted-steps.ts';

/* The scripted answers of the agent that works on a repository. */

export const BUILD = 'add three lines to the repository';
export const PUSH = 'push to the private repository';
export const PUSHED_BRANCH = 'agents/added';
export const PROPOSE = 'propose a change of the private repository';
export const PROPOSED_BRANCH = 'agents/proposed';
export const BUILDER = 'builder';

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
const PROPOSE_STEPS: Steps = {
  taken: ['git_clone', { url: PRIVATE_REPOSITORY_URL, folder: 'proposal' }],
  edited: ['file_write', { path: 'proposal/proposed.txt', text: 'proposed\n' }],
  recorded: ['git_commit', { repository: 'proposal', message: 'Propose a file', paths: ['proposed.txt'] }],
  sent: [
    'git_push',
    {
      repository: 'proposal',
      url: PRIVATE_REPOSITORY_URL,
      commit: '{{toolCall.recorded.commit}}',
      branch: PROPOSED_BRANCH,
    },
  ],
  requested: [
    'git_pull_request',
    { url: PRIVATE_REPOSITORY_URL, branch: PROPOSED_BRANCH, base: 'main', title: 'Propose a file' },
  ],
};

/** URLs of hosts that the agent must not reach, nor resolve where the policy does not permit the name. */
const refusedUrls = (path: string): readonly string[] => [
  ...FORGED_URLS,
  ...Object.keys(namesInside('example.com', PUBLIC_ADDRESS)).map((name) => `https://${name}/${path}`),
  ...FORGED_REDIRECTS.map((url) => `https://moved.example.com/moved/${encodeURIComponent(url)}`),
];
type RefusedCall = readonly [tool: string, input: { readonly url: string; readonly folder?: string }];
const REFUSED: readonly RefusedCall[] = [
  ...refusedUrls('page').map((url) => ['web_fetch', { url }] as const),
  ...refusedUrls('tools.git').map((url, index) => ['git_clone', { url, folder: `inside-${index}` }] as const),
];
export const REFUSED_CALLS: readonly (readonly RefusedCall[])[] = batches(REFUSED);
export const refusedCalls = (part: number): string => `read and clone what is inside, part ${part}.`;

export function buildingRules(): Rule[] {
  return [
    ...stepRules(BUILDER, BUILD, STEPS),
    ...stepRules(BUILDER, PUSH, PUSH_STEPS),
    ...stepRules(BUILDER, PROPOSE, PROPOSE_STEPS),
    ...REFUSED_CALLS.flatMap((calls, part) => batchRules(BUILDER, refusedCalls(part), calls)),
  ];
}
