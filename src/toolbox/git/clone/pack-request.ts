import { isSafeBranchName } from '../../../git/branch-name.ts';
import { isObjectId } from '../../../git/objects/object-id.ts';
import type { CallOptions } from '../../../lib/call-options.ts';
import { TemperError } from '../../../lib/errors.ts';
import { type Json, member } from '../../../lib/json.ts';
import type { CallContext } from '../../../tools/contract.ts';
import type { CommitToPack } from '../remote/pack-commit.ts';
import { areIds, callerOf, contextIn, invalid, isText, textsIn } from './request-fields.ts';

/** The name under which the sandbox container of a pod packs a commit for its agent container. */
export const PACK_REQUEST = 'pack-commit';

/** Git is asked about so many. */
const MAX_HEADS = 500;

export function packRequest({ folder, branch, commit, before, heads }: CommitToPack, context: CallContext): Json {
  const known = { ...(before === undefined ? {} : { before }), heads: heads.slice(0, MAX_HEADS) };
  return { folder, branch, commit, ...known, caller: callerOf(context) };
}

/** The request as the agent container sent it. Throws TEMPER_TOOL_INPUT_INVALID. */
export function parsePackRequest(value: Json, op: CallOptions): { order: CommitToPack; context: CallContext } {
  const [folder = '', branch = '', commit = ''] = textsIn(value, ['folder', 'branch', 'commit']);
  if (!isText(folder) || !isSafeBranchName(branch) || !isObjectId(commit)) throw invalid();
  const [before, heads] = [member(value, 'before'), member(value, 'heads') ?? null];
  if (!areIds(heads, MAX_HEADS)) throw invalid();
  const context = contextIn(value, op);
  if (before === undefined) return { order: { folder, branch, commit, heads }, context };
  if (typeof before !== 'string' || !isObjectId(before)) throw invalid();
  return { order: { folder, branch, commit, before, heads }, context };
}

/** The pack that the sandbox container sent. What it contains is checked where the credential is. */
export function packIn(answer: Json): Buffer {
  if (typeof answer === 'string') return Buffer.from(answer, 'base64');
  throw new TemperError('TEMPER_TOOL_OUTPUT_INVALID', 'the sandbox container returned no pack');
}
