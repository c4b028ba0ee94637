import { isSafeBranchName } from '../../../git/branch-name.ts';
import { isObjectId } from '../../../git/objects/object-id.ts';
import { TemperError } from '../../../lib/errors.ts';
import { type Json, member, textAt } from '../../../lib/json.ts';
import type { CallOptions } from '../../../lib/call-options.ts';
import type { CallContext } from '../../../tools/contract.ts';
import { isBranchName } from '../git-inputs.ts';
import type { FetchToWrite } from '../remote/write-fetch.ts';
import type { CloneToWrite } from './write-clone.ts';

/** The name under which the sandbox container of a pod writes clones for its agent container. */
export const CLONE_REQUEST = 'write-clone';

/** The same for what it fetched. */
export const FETCH_REQUEST = 'write-fetch';

const MAX_TEXT = 4_096;
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

function callerOf({ agent, namespace, session, rootMessage, op }: CallContext): Json {
  return { agent, namespace, session, rootMessage, key: op.key };
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
  if (!areIds(shallow)) throw invalid();
  return { folder, url, branch: branchIn(value), clone: { commit, shallow, pack: Buffer.from(pack, 'base64') } };
}

function branchIn(value: Json): string | undefined {
  const branch = member(value, 'branch');
  if (branch === undefined || (typeof branch === 'string' && isBranchName(branch))) return branch;
  throw invalid();
}

function contextIn(value: Json, op: CallOptions): CallContext {
  const texts = textsIn(member(value, 'caller') ?? null, ['agent', 'namespace', 'session', 'rootMessage', 'key']);
  if (!texts.every(isText)) throw invalid();
  const [agent = '', namespace = '', session = '', rootMessage = '', key = ''] = texts;
  return {
    agent,
    namespace,
    session,
    rootMessage,
    stack: [],
    origin: 'Agent',
    op: { ...op, key },
    invoke: () => Promise.reject(new TemperError('TEMPER_INTERNAL', 'a clone calls no other tool')),
  };
}

function textsIn(value: Json, names: readonly string[]): string[] {
  return names.map((name) => textAt(value, [name]));
}

function isText(value: string): boolean {
  return value !== '' && value.length <= MAX_TEXT;
}

function areIds(value: Json): value is string[] {
  return (
    Array.isArray(value) &&
    value.length <= MAX_SHALLOW &&
    value.every((item) => typeof item === 'string' && isObjectId(item))
  );
}

function invalid(): TemperError {
  return new TemperError('TEMPER_TOOL_INPUT_INVALID', 'the request to write a repository is not valid');
}
