import { GitRemote } from '../../../git/remote.ts';
import type { CallOptions } from '../../../lib/call-options.ts';
import type { Clock } from '../../../lib/clock.ts';
import { TemperError } from '../../../lib/errors.ts';
import type { Json } from '../../../lib/json.ts';
import { printable } from '../../../lib/printable.ts';
import { checkedTool } from '../../../tools/checks/checked-tool.ts';
import type { CallContext, Tool, ToolDescriptor } from '../../../tools/contract.ts';
import { optionalText, requiredText } from '../../input.ts';
import {
  assertNoCredential,
  assertConnected,
  assertReachable,
  connectedRepository,
  denialOf,
  type RemoteGitDeps,
  URL_SCHEMA,
  REMOTE_FAILURES,
} from './deps.ts';
import type { ConnectedRepository, HostDenial, OpenedPullRequest, PullRequestOrder, PullRequests } from './port.ts';
import { assertPushable, BRANCH_SCHEMA, branchArgument } from './pushable.ts';

export const PULL_REQUEST: ToolDescriptor = {
  name: 'git_pull_request',
  description:
    'Open a pull request from a branch that was pushed with git_push. A branch that has an open one gets no second; the result is that one.',
  inputSchema: {
    type: 'object',
    properties: {
      url: URL_SCHEMA,
      branch: BRANCH_SCHEMA,
      base: { ...BRANCH_SCHEMA, description: 'The branch to merge into; the default branch when absent' },
      title: { type: 'string', minLength: 1, maxLength: 200 },
      body: { type: 'string', maxLength: 60_000, description: 'Markdown' },
    },
    required: ['url', 'branch', 'title'],
    additionalProperties: false,
  },
  outputSchema: {
    type: 'object',
    properties: {
      number: { type: 'integer' },
      page: { type: 'string', description: 'Its URL, for users' },
      state: { enum: ['Open', 'Merged', 'Closed'] },
      isNew: { type: 'boolean' },
    },
    required: ['number', 'page', 'state', 'isNew'],
    additionalProperties: false,
  },
  category: 'version_control',
  action: 'vcs:push',
  sideEffects: true,
  locality: 'Brokered',
  examples: [
    { url: 'https://git.example.com/team/shop.git', branch: 'temper/retries', base: 'main', title: 'Try five times' },
  ],
  failures: REMOTE_FAILURES,
  resultOrigin: 'Web',
};
const MAX_PAGE = 2_048;

/** Opens pull requests on the server that a connection names, from branches that agents may push. */
export function pullRequestTool(deps: RemoteGitDeps): Tool {
  return checkedTool({
    descriptor: PULL_REQUEST,
    check(input, caller) {
      branchArgument(input, 'branch');
      if (optionalText(input, 'base') !== undefined) branchArgument(input, 'base');
      assertReachable(input, caller, deps);
      assertConnected(input, deps);
    },
    call: (input, context) => requestPull(input, context, deps),
  });
}

async function requestPull(input: Json, context: CallContext, deps: RemoteGitDeps): Promise<Json> {
  const url = requiredText(input, 'url');
  const there = deps.gatewayRepositories?.find(url);
  if (there !== undefined) return there.call({ tool: PULL_REQUEST, input, op: context.op });
  const repository = connectedRepository(url, deps);
  const denial = denialOf(url, context, deps);
  return openPullRequest(input, { repository, denial, clock: deps.clock }, context.op);
}

interface PullRequestTarget {
  repository: ConnectedRepository;
  denial: HostDenial;
  clock: Clock;
}

/** With the credential that this process has. */
export async function openPullRequest(
  input: Json,
  { repository, denial, clock }: PullRequestTarget,
  op: CallOptions,
): Promise<Json> {
  const pullRequests = repository.pullRequests(denial);
  if (pullRequests === undefined)
    throw new TemperError(
      'TEMPER_CONNECTION_DENIED',
      `connection "${repository.connection}" names no server with pull requests; add pullRequests to it`,
    );
  const branch = branchArgument(input, 'branch');
  const { branches, head } = await new GitRemote(repository.transport(denial), clock).heads(op);
  assertPushable(repository, branch, head);
  const base = optionalText(input, 'base') ?? head;
  if (base === undefined)
    throw new TemperError('TEMPER_TOOL_INPUT_INVALID', 'the server names no default branch; name "base"');
  for (const name of [branch, base])
    if (!branches.has(name)) throw new TemperError('TEMPER_NOT_FOUND', `the repository has no branch ${name}`);
  const order = { branch, base, title: requiredText(input, 'title'), body: optionalText(input, 'body') ?? '' };
  const { found, isNew } = await foundOrCreated(pullRequests, order, op);
  const page = printable(found.page, MAX_PAGE);
  assertNoCredential(repository, [Buffer.from(page)]);
  return { number: found.number, page, state: found.state, isNew };
}

async function foundOrCreated(
  pullRequests: PullRequests,
  order: PullRequestOrder,
  op: CallOptions,
): Promise<{ found: OpenedPullRequest; isNew: boolean }> {
  const earlier = await pullRequests.find(order, op);
  if (earlier?.state === 'Open') return { found: earlier, isNew: false };
  const created = await pullRequests.create(order, op);
  if (created !== undefined) return { found: created, isNew: true };
  // Another call may have opened one meanwhile.
  const other = await pullRequests.find(order, op);
  if (other?.state === 'Open') return { found: other, isNew: false };
  throw new TemperError(
    'TEMPER_TOOL_FAILED',
    `the server opens no pull request from ${order.branch} into ${order.base}; the branch may have no commits of its own`,
  );
}
