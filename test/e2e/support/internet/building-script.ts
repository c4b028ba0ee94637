import { namesInside } from '../../../support/egress/inside-addresses.ts';
import { FORGED_REDIRECTS } from '../../../support/egress/forged-urls.ts';
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

/** No repository of these URLs may be reached, nor resolved where the policy does not permit the name. */
const REFUSED: readonly string[] = [
  ...Object.keys(namesInside('example.com', PUBLIC_ADDRESS)).map((name) => `https://${name}/tools.git`),
  ...FORGED_REDIRECTS.map((url) => `https://moved.example.com/moved/${encodeURIComponent(url)}`),
];
export const REFUSED_CLONES: readonly (readonly string[])[] = batches(REFUSED);
export const refusedClones = (index: number): string => `clone what is inside, part ${index}`;

export function buildingRules(): Rule[] {
  return [
    ...stepRules(BUILDER, BUILD, STEPS),
    ...stepRules(BUILDER, PUSH, PUSH_STEPS),
    ...stepRules(BUILDER, PROPOSE, PROPOSE_STEPS),
    ...REFUSED_CLONES.flatMap(refusalRules),
  ];
}

function refusalRules(urls: readonly string[], part: number): Rule[] {
  const clones = urls.map((url, index) => ['git_clone', { url, folder: `inside-${part}-${index}` }] as const);
  return batchRules(BUILDER, refusedClones(part), clones);
}
