import { parentsOf } from '../../../git/objects/commit.ts';
import { EVERYTHING, type PackLimits, type PackObjects, readPack } from '../../../git/pack/pack-reader.ts';
import type { GitRemote } from '../../../git/remote.ts';
import type { CallOptions } from '../../../lib/call-options.ts';
import { isTemperError, TemperError } from '../../../lib/errors.ts';
import type { JsonObject } from '../../../lib/json.ts';
import { printable } from '../../../lib/printable.ts';
import { assertNoCredential } from './deps.ts';
import type { BranchState, ConnectedRepository } from './port.ts';
import { assertPushable } from './pushable.ts';

/** A repository, and how it is reached. */
export interface PushTarget {
  readonly repository: ConnectedRepository;
  readonly remote: Pick<GitRemote, 'heads' | 'pushPack'>;
}

export interface CommitToPush {
  readonly branch: string;
  readonly commit: string;
  readonly pack: Buffer;
}

interface PackCheck {
  readonly limits: PackLimits;
  /** Packs whose objects are in memory at the same time wait for each other. */
  readonly inTurn: <T>(work: () => Promise<T>) => Promise<T>;
}

/** What the server has. Throws TEMPER_CONNECTION_DENIED for a branch that no agent may push. */
export async function pushableBranch(
  { repository, remote }: PushTarget,
  branch: string,
  op: CallOptions,
): Promise<BranchState> {
  const { branches, head } = await remote.heads(op);
  assertPushable(repository, branch, head);
  const before = branches.get(branch);
  return { ...(before === undefined ? {} : { before }), heads: [...branches.values()] };
}

/** Reads the pack, and pushes it when it continues the branch. Returns how many objects it has. Throws TEMPER_TOOL_FAILED. */
export async function pushPack(
  { repository, remote }: PushTarget,
  { branch, commit, pack }: CommitToPush,
  { before, heads }: BranchState,
  { limits, inTurn }: PackCheck,
  op: CallOptions,
): Promise<number> {
  const count = await inTurn(async () => {
    const objects = await objectsOf(pack, limits);
    assertForward(objects, commit, { before, heads });
    return objects.size;
  });
  const refusal = await remote.pushPack({ branch, before, after: commit, pack }, op);
  if (refusal === undefined) return count;
  assertNoCredential(repository, [Buffer.from(refusal)]);
  throw new TemperError('TEMPER_TOOL_FAILED', `the server refuses the push to ${branch}: ${refusal}`);
}

export function pushOutput(branch: string, commit: string, { before }: BranchState, objects: number): JsonObject {
  return { branch, commit, ...(before === undefined ? {} : { before }), objects };
}

/** The client speaks of servers, and this pack is one of the caller. */
async function objectsOf(pack: Buffer, limits: PackLimits): Promise<PackObjects> {
  try {
    return await readPack(pack, limits, EVERYTHING);
  } catch (error) {
    if (!isTemperError(error, 'TEMPER_CONNECTION_FAILED')) throw error;
    const most = `at most ${limits.objects} objects of ${limits.totalBytes} bytes together`;
    const message = `nothing is pushed: the pack of the commits is not in the form of Git, or has more than ${most}; push fewer commits`;
    throw new TemperError('TEMPER_TOOL_FAILED', message, { cause: error });
  }
}

/**
 * The pack decides what is pushed, and not what Git in the workspace says: it has the commit, and the commit of the branch is among those
 * before it. Throws TEMPER_TOOL_FAILED.
 */
function assertForward(objects: PackObjects, commit: string, { before, heads }: BranchState): void {
  if (before === undefined && heads.includes(commit)) return;
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
