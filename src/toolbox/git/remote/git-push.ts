import { isObjectId } from '../../../git/objects/object-id.ts';
import { GitRemote } from '../../../git/remote.ts';
import { TemperError } from '../../../lib/errors.ts';
import type { Json } from '../../../lib/json.ts';
import { checkedTool } from '../../../tools/checks/checked-tool.ts';
import type { CallContext, Tool, ToolDescriptor } from '../../../tools/contract.ts';
import { optionalText, requiredText } from '../../input.ts';
import type { CloneLocation } from '../clone/clone-location.ts';
import { PATH_SCHEMA } from '../git-inputs.ts';
import {
  assertConnected,
  assertReachable,
  connectedRepository,
  denialOf,
  cloneLocationOf,
  type RemoteGitDeps,
  URL_SCHEMA,
  REMOTE_FAILURES,
} from './deps.ts';
import type { GatewayRepository } from './port.ts';
import { pushableBranch, pushOutput, pushPack, type PushTarget } from './push-pack.ts';
import { BRANCH_SCHEMA, branchArgument } from './pushable.ts';

export const GIT_PUSH: ToolDescriptor = {
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
  examples: [
    {
      url: 'https://git.example.com/team/shop.git',
      branch: 'temper/retries',
      commit: '4b825dc642cb6eb9a060e54bf8d69288fbee4904',
    },
  ],
  failures: REMOTE_FAILURES,
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
      assertConnected(input, deps);
    },
    call: (input, context) => pushCommit(input, context, deps),
  });
}

async function pushCommit(input: Json, context: CallContext, deps: RemoteGitDeps): Promise<Json> {
  const location = cloneLocationOf('git_push', deps);
  const url = requiredText(input, 'url');
  const there = deps.gatewayRepositories?.find(url);
  if (there !== undefined) return pushThroughGateway(there, location, input, context);
  const repository = connectedRepository(url, deps);
  const remote = new GitRemote(repository.transport(denialOf(url, context, deps)), deps.clock);
  return pushed({ repository, remote }, location, input, context);
}

/** With the credential that this process has. */
async function pushed(target: PushTarget, location: CloneLocation, input: Json, context: CallContext): Promise<Json> {
  const [branch, commit] = [branchArgument(input, 'branch'), commitArgument(input)];
  const state = await pushableBranch(target, branch, context.op);
  if (state.before === commit) return pushOutput(branch, commit, state, 0);
  const pack = await location.pack({ folder: folderOf(input), branch, commit, ...state }, context);
  const check = { limits: location.limits.pack, inTurn: <T>(work: () => Promise<T>): Promise<T> => work() };
  const objects = await pushPack(target, { branch, commit, pack }, state, check, context.op);
  return pushOutput(branch, commit, state, objects);
}

/** The gateway has the credential. It decides again, from its own look at the server and at the pack. */
async function pushThroughGateway(
  repository: GatewayRepository,
  location: CloneLocation,
  input: Json,
  context: CallContext,
): Promise<Json> {
  const [branch, commit] = [branchArgument(input, 'branch'), commitArgument(input)];
  const call = { tool: GIT_PUSH, input, op: context.op };
  return location.inTurn(context.session, async () => {
    const state = await repository.branch(branch, call);
    if (state.before === commit) return repository.call(call);
    return repository.call(call, await location.pack({ folder: folderOf(input), branch, commit, ...state }, context));
  });
}

function folderOf(input: Json): string {
  return optionalText(input, 'repository') ?? '.';
}

/** The whole id of a commit. Throws TEMPER_TOOL_INPUT_INVALID. */
export function commitArgument(input: Json): string {
  const commit = requiredText(input, 'commit');
  if (isObjectId(commit)) return commit;
  throw new TemperError(
    'TEMPER_TOOL_INPUT_INVALID',
    '"commit" must be the whole id of a commit: 40 digits and letters',
  );
}
