import type { Json, JsonObject } from '../../lib/json.ts';
import { member } from '../../lib/json.ts';
import { checkedTool } from '../../tools/checks/checked-tool.ts';
import type { Tool, ToolDescriptor } from '../../tools/contract.ts';
import { optionalNumber, optionalText, requiredText } from '../input.ts';
import type { Terminal } from '../terminal/port.ts';
import { GIT_FAILURES, runGit } from './git-command.ts';
import { optionalBranch, optionalRevision, PATH_SCHEMA, pathArguments, REVISION_SCHEMA } from './git-inputs.ts';

const MAX_COMMITS = 200;
const DIFF_OPTIONS = ['--no-ext-diff', '--no-textconv', '--ignore-submodules=dirty'];

/** A tool that is one command of git, or several of which the last one gives the result. */
interface GitTool {
  name: string;
  description: string;
  properties: JsonObject;
  required?: string[];
  examples?: readonly Json[];
  action: 'vcs:read' | 'vcs:branch' | 'vcs:commit';
  /** Members of the output beside its text: their schemas, and how the text has them. */
  found?: { properties: JsonObject; in(this: void, text: string): JsonObject };
  commands(this: void, input: Json): string[][];
}

const GIT_TOOLS: readonly GitTool[] = [
  {
    name: 'git_status',
    description:
      'The branch and the changed files of a Git repository in the workspace, in the short format of git status.',
    properties: {},
    action: 'vcs:read',
    commands: () => [['status', '--short', '--branch', '--untracked-files=all', '--ignore-submodules=dirty']],
  },
  {
    name: 'git_diff',
    examples: [{ from: 'main', to: 'HEAD', stat: true }],
    description:
      'Changes as a unified difference: of the files against the index, of the index with staged, or between the commits from and to.',
    properties: {
      path: PATH_SCHEMA,
      staged: { type: 'boolean' },
      from: REVISION_SCHEMA,
      to: REVISION_SCHEMA,
      stat: { type: 'boolean', description: 'Only the names of the files and the numbers of lines' },
    },
    action: 'vcs:read',
    commands: (input) => [
      [
        'diff',
        ...DIFF_OPTIONS,
        ...(member(input, 'staged') === true ? ['--cached'] : []),
        ...(member(input, 'stat') === true ? ['--stat'] : []),
        ...present(optionalRevision(input, 'from')),
        ...present(optionalRevision(input, 'to')),
        ...pathArguments(input),
      ],
    ],
  },
  {
    name: 'git_log',
    description: 'Commits, the newest first: digest, date, author and subject.',
    properties: {
      count: { type: 'integer', minimum: 1, maximum: MAX_COMMITS, description: '20 when absent' },
      revision: REVISION_SCHEMA,
      path: PATH_SCHEMA,
    },
    action: 'vcs:read',
    commands: (input) => [
      [
        'log',
        `--max-count=${optionalNumber(input, 'count') ?? 20}`,
        '--date=iso-strict',
        '--format=%h %ad %an: %s',
        ...present(optionalRevision(input, 'revision')),
        ...pathArguments(input),
      ],
    ],
  },
  {
    name: 'git_show',
    examples: [{ revision: 'HEAD~2', path: 'src/config.ts' }],
    description: 'One commit with its changes; with path, the text of the file in this commit.',
    properties: { revision: { ...REVISION_SCHEMA, description: 'HEAD when absent' }, path: PATH_SCHEMA },
    action: 'vcs:read',
    commands: (input) => {
      const revision = optionalRevision(input, 'revision') ?? 'HEAD';
      const path = optionalText(input, 'path');
      if (path !== undefined) return [['cat-file', '--end-of-options', 'blob', `${revision}:./${path}`]];
      return [['show', '--no-show-signature', '--format=fuller', ...DIFF_OPTIONS, revision]];
    },
  },
  {
    name: 'git_branch',
    examples: [
      { name: 'retries', from: 'main' },
      { name: 'retries', switch: true },
    ],
    description:
      'Without name: the branches. With name: creates the branch, from the commit from or the present one, or switches to it.',
    properties: {
      name: REVISION_SCHEMA,
      from: REVISION_SCHEMA,
      switch: { type: 'boolean', description: 'Switch to the branch, which exists' },
    },
    action: 'vcs:branch',
    commands: (input) => {
      const list = [
        'branch',
        '--all',
        '--list',
        '--format=%(if)%(HEAD)%(then)* %(end)%(refname:short) %(objectname:short)',
      ];
      const name = optionalBranch(input, 'name');
      if (name === undefined) return [list];
      const from = present(optionalRevision(input, 'from'));
      if (member(input, 'switch') === true) return [['switch', '--no-guess', '--no-recurse-submodules', name], list];
      return [['branch', '--no-track', name, ...from], list];
    },
  },
  {
    name: 'git_commit',
    examples: [{ message: 'Try five times', paths: ['src/config.ts'] }],
    description:
      'Commit: the changes of paths, of all files with all, or else what is staged. Returns the new commit. The author is the agent.',
    properties: {
      message: { type: 'string', minLength: 1, maxLength: 16_384 },
      paths: { type: 'array', items: PATH_SCHEMA, maxItems: 200 },
      all: { type: 'boolean', description: 'All changed and new files' },
    },
    required: ['message'],
    action: 'vcs:commit',
    found: {
      properties: { commit: { type: 'string', description: 'Its whole id' } },
      in: (text) => ({ commit: text.slice(0, 40) }),
    },
    commands: (input) => {
      const paths = member(input, 'all') === true ? ['--', ':/'] : pathArguments(input, 'paths');
      const add = paths.length === 0 ? [] : [['add', '--all', ...paths]];
      const commit = [
        'commit',
        '--quiet',
        '--no-verify',
        '--cleanup=whitespace',
        `--message=${requiredText(input, 'message')}`,
      ];
      return [...add, commit, ['log', '--max-count=1', '--stat', '--format=%H %s']];
    },
  },
];

/** The tools for repositories of Git in the workspace. None of them connects to anything. */
export function gitTools(terminal: Terminal | undefined): Tool[] {
  return GIT_TOOLS.map(
    (tool): Tool =>
      checkedTool({
        descriptor: describe(tool),
        check: (input) => void tool.commands(input),
        async call(input, context) {
          const folder = optionalText(input, 'repository') ?? '.';
          let last: Awaited<ReturnType<typeof runGit>> = { text: '' };
          for (const args of tool.commands(input)) last = await runGit(terminal, context, { args, folder });
          return { ...last, ...tool.found?.in(last.text) };
        },
      }),
  );
}

function describe({ name, description, properties, required = [], examples, action, found }: GitTool): ToolDescriptor {
  const repository = { ...PATH_SCHEMA, description: 'Folder, relative to the workspace; the workspace when absent' };
  return {
    name,
    description: `${description} Returns {${['text', ...Object.keys(found?.properties ?? {})].join(', ')}}.`,
    inputSchema: { type: 'object', properties: { repository, ...properties }, required, additionalProperties: false },
    outputSchema: {
      type: 'object',
      properties: { text: { type: 'string' }, omittedBytes: { type: 'integer' }, ...found?.properties },
      required: ['text'],
      additionalProperties: false,
    },
    category: 'version_control',
    action,
    sideEffects: action !== 'vcs:read',
    locality: 'Local',
    ...(examples === undefined ? {} : { examples }),
    failures: GIT_FAILURES,
  };
}

function present(text: string | undefined): string[] {
  return text === undefined ? [] : [text];
}
