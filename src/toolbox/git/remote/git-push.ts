import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { parentsOf } from '../../../git/objects/commit.ts';
import { isObjectId } from '../../../git/objects/object-id.ts';
import { type PackObjects, EVERYTHING, readPack } from '../../../git/pack/pack-reader.ts';
import { GitRemote } from '../../../git/remote.ts';
import { TemperError } from '../../../lib/errors.ts';
import type { Json } from '../../../lib/json.ts';
import { printable } from '../../../lib/printable.ts';
import { checkedTool } from '../../../tools/checks/checked-tool.ts';
import type { CallContext, Tool, ToolDescriptor } from '../../../tools/contract.ts';
import { optionalText, requiredText } from '../../input.ts';
import { CLONE_LIMITS, MAX_CLONE_BYTES } from '../clone/checked-clone.ts';
import { PATH_SCHEMA } from '../git-inputs.ts';
import {
  assertNoCredential,
  assertReachable,
  connectedRepository,
  denialOf,
  localGit,
  type RemoteGitDeps,
  URL_SCHEMA,
} from './deps.ts';
import { LocalRepository, withExchangeFolder } from './local-repository.ts';
import { assertPushable, BRANCH_SCHEMA, branchArgument } from './pushable.ts';

const GIT_PUSH: ToolDescriptor = {
  name: 'git_push',
  description:
    'Push a commit of a repository of the workspace to a branch of a repository elsewhere. The branch begins with the prefix that a user chose. A push adds commits; it never replaces or deletes any.',
  inputSchema: {
    type: 'object',
    properties: {
      repository: { ...PATH_SCHEMA, description: 'Folder, relative to the workspace; the workspace when absent' },
      url: URL_SCHEMA,
      branch: BRANCH_SCHEMA,
      commit: { type: 'string', pattern: '^[0-9a-f]{40}$', description: 'The whole id of the commit' },
    },
    required: ['url', 'branch', 'commit'],
    additionalProperties: false,
  },
  outputSchema: {
    type: 'object',
    properties: {
      branch: { type: 'string' },
      commit: { type: 'string' },
      before: { type: 'string', description: 'The commit that the branch had; absent for a new branch' },
      objects: { type: 'integer', description: 'New ones; 0 when the branch had the commit' },
    },
    required: ['branch', 'commit', 'objects'],
    additionalProperties: false,
  },
  category: 'version_control',
  action: 'vcs:push',
  sideEffects: true,
  locality: 'Brokered',
  // It says what the server says.
  resultOrigin: 'Web',
};

/** Pushes through the client of Temper with the credential of a connection. Git only packs the commits, and the client reads the pack. */
export function gitPushTool(deps: RemoteGitDeps): Tool {
  return checkedTool({
    descriptor: GIT_PUSH,
    check(input, caller) {
      branchArgument(input, 'branch');
      commitArgument(input);
      assertReachable(input, caller, deps);
    },
    call: (input, context) => pushCommit(input, context, deps),
  });
}

async function pushCommit(input: Json, context: CallContext, deps: RemoteGitDeps): Promise<Json> {
  const terminal = localGit('git_push', deps);
  const url = requiredText(input, 'url');
  const [branch, commit] = [branchArgument(input, 'branch'), commitArgument(input)];
  const repository = connectedRepository(url, deps);
  const remote = new GitRemote(repository.transport(denialOf(url, context, deps)), deps.clock);
  const { branches, head } = await remote.heads(context.op);
  assertPushable(repository, branch, head);
  const before = branches.get(branch);
  const output = (objects: number): Json => ({
    branch,
    commit,
    ...(before === undefined ? {} : { before }),
    objects,
  });
  if (before === commit) return output(0);
  const local = new LocalRepository(optionalText(input, 'repository') ?? '.', terminal, context);
  const known = await knownOnServer(local, { commit, before, branch, heads: [...branches.values()] });
  const pack = await packed(local, commit, known, deps.workspace);
  const objects = await readPack(pack, CLONE_LIMITS, EVERYTHING);
  assertForward(objects, { commit, before, known });
  const refusal = await remote.pushPack({ branch, before, after: commit, pack }, context.op);
  if (refusal === undefined) return output(objects.size);
  assertNoCredential(repository, [Buffer.from(refusal)]);
  throw new TemperError('TEMPER_TOOL_FAILED', `the server refuses the push to ${branch}: ${refusal}`);
}

function commitArgument(input: Json): string {
  const commit = requiredText(input, 'commit');
  if (isObjectId(commit)) return commit;
  throw new TemperError(
    'TEMPER_TOOL_INPUT_INVALID',
    '"commit" must be the whole id of a commit: 40 digits and letters',
  );
}

interface Wanted {
  commit: string;
  /** The commit of the branch. */
  before: string | undefined;
  branch: string;
  /** The commits of all branches of the server. */
  heads: readonly string[];
}

/** Commits of the server that the repository has too: the pack leaves out what they contain. */
async function knownOnServer(local: LocalRepository, { commit, before, branch, heads }: Wanted): Promise<string[]> {
  const wanted = before === undefined ? heads : [before];
  const [found, ...known] = await local.commitsOf([commit, ...wanted]);
  if (found !== commit)
    throw new TemperError('TEMPER_NOT_FOUND', `the repository in the workspace has no commit ${commit}`);
  if (before !== undefined && !known.includes(before))
    throw new TemperError(
      'TEMPER_TOOL_FAILED',
      `${branch} has commits that the repository in the workspace does not have; read it with git_fetch, and build on them`,
    );
  return wanted.includes(commit) ? [...known, commit] : known;
}

/** The pack of what the server does not have. Throws TEMPER_TOOL_FAILED for more bytes than a push may have. */
async function packed(local: LocalRepository, commit: string, known: readonly string[], workspace: string) {
  return withExchangeFolder(workspace, async (folder) => {
    const input = `${[commit, ...known.map((id) => `^${id}`)].join('\n')}\n`;
    const args = ['pack-objects', '--revs', '--quiet', '--threads=1', join(folder, 'pushed')];
    const name = (
      await local.git(args, { input, settings: ['pack.packSizeLimit=0', 'pack.writeReverseIndex=false'] })
    ).trim();
    if (!isObjectId(name)) throw new TemperError('TEMPER_TOOL_FAILED', 'git made no pack of the commit');
    return readBounded(join(folder, `pushed-${name}.pack`));
  });
}

/** A regular file that a program of the agent wrote, and no link. */
async function readBounded(path: string): Promise<Buffer> {
  await using file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  const info = await file.stat();
  if (!info.isFile() || info.size > MAX_CLONE_BYTES)
    throw new TemperError('TEMPER_TOOL_FAILED', `the push has more than ${MAX_CLONE_BYTES} bytes; push fewer commits`);
  const bytes = Buffer.alloc(info.size);
  const { bytesRead } = await file.read(bytes, 0, info.size, 0);
  return bytes.subarray(0, bytesRead);
}

/**
 * The pack decides what is pushed, and not what Git in the workspace says: it has the commit, and the commit of the branch is among those
 * before it. Throws TEMPER_TOOL_FAILED.
 */
function assertForward(
  objects: PackObjects,
  { commit, before, known }: Pick<Wanted, 'commit' | 'before'> & { known: readonly string[] },
): void {
  if (before === undefined && known.includes(commit)) return;
  const seen = new Set<string>([commit]);
  for (const id of seen) {
    const object = objects.get(id);
    if (object?.type !== 'commit') continue;
    for (const parent of parentsOf(object.content)) seen.add(parent);
  }
  const hasCommit = objects.get(commit)?.type === 'commit';
  if (hasCommit && (before === undefined || seen.has(before))) return;
  const problem = hasCommit
    ? `the commits do not continue ${printable(before ?? '', 40)}, so the push would replace others`
    : 'git packed another commit';
  throw new TemperError('TEMPER_TOOL_FAILED', `nothing is pushed: ${problem}`);
}
