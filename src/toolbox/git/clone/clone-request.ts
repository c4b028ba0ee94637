import { isSafeBranchName } from '../../../git/branch-name.ts';
import { isObjectId } from '../../../git/objects/object-id.ts';
import { type Json, member } from '../../../lib/json.ts';
import type { CallOptions } from '../../../lib/call-options.ts';
import type { CallContext } from '../../../tools/contract.ts';
import { isBranchName } from '../git-inputs.ts';
import type { FetchToWrite } from '../remote/write-fetch.ts';
import { areIds, callerOf, contextIn, invalid, isText, textsIn } from './request-fields.ts';
import type { CloneToWrite } from './write-clone.ts';

/** The name under which the sandbox container of a pod writes clones for its agent container. */
export const CLONE_REQUEST = 'write-clone';

/** The same for what it fetched. */
export const FETCH_REQUEST = 'write-fetch';

const MAX_SHALLOW = 1_000;

/** What the sandbox container gets: the clone that was checked, and for whom Git runs. */
export function cloneRequest({ folder, url, clone, branch }: CloneToWrite, context: CallContext): Json {
  const { commit, pack, shallow } = clone;
  return {
    folder,
    url,
    commit,
    ...(branch === undefined ? {} : { branch }),
    shallow: [...shallow],
    pack: pack.toString('base64'),
    caller: callerOf(context),
  };
}

export function fetchRequest({ folder, branch, commit, pack }: FetchToWrite, context: CallContext): Json {
  return { folder, branch, commit, pack: pack.toString('base64'), caller: callerOf(context) };
}

/** The request as the agent container sent it. Throws TEMPER_TOOL_INPUT_INVALID. */
export function parseCloneRequest(value: Json, op: CallOptions): { clone: CloneToWrite; context: CallContext } {
  return { clone: cloneIn(value), context: contextIn(value, op) };
}

/** As `parseCloneRequest`. */
export function parseFetchRequest(value: Json, op: CallOptions): { fetched: FetchToWrite; context: CallContext } {
  const [folder = '', branch = '', commit = '', pack = ''] = textsIn(value, ['folder', 'branch', 'commit', 'pack']);
  if (!isText(folder) || !isSafeBranchName(branch) || !isObjectId(commit) || pack === '') throw invalid();
  return { fetched: { folder, branch, commit, pack: Buffer.from(pack, 'base64') }, context: contextIn(value, op) };
}

function cloneIn(value: Json): CloneToWrite {
  const [folder = '', url = '', commit = '', pack = ''] = textsIn(value, ['folder', 'url', 'commit', 'pack']);
  if (![folder, url].every(isText) || /[\n\r\0]/.test(url) || pack === '' || !isObjectId(commit)) throw invalid();
  const shallow = member(value, 'shallow') ?? [];
  if (!areIds(shallow, MAX_SHALLOW)) throw invalid();
  return { folder, url, branch: branchIn(value), clone: { commit, shallow, pack: Buffer.from(pack, 'base64') } };
}

function branchIn(value: Json): string | undefined {
  const branch = member(value, 'branch');
  if (branch === undefined || (typeof branch === 'string' && isBranchName(branch))) return branch;
  throw invalid();
}
