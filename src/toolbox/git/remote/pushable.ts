import { isSafeBranchName } from '../../../git/branch-name.ts';
import { TemperError } from '../../../lib/errors.ts';
import type { Json } from '../../../lib/json.ts';
import { printable } from '../../../lib/printable.ts';
import { requiredText } from '../../input.ts';
import type { ConnectedRepository } from './port.ts';

export const BRANCH_SCHEMA = { type: 'string', minLength: 1, maxLength: 200 } as const;

/** The name of a branch. Throws TEMPER_TOOL_INPUT_INVALID for one that Git or a server could read as something else. */
export function branchArgument(input: Json, key: string): string {
  const name = requiredText(input, key);
  if (isSafeBranchName(name)) return name;
  throw new TemperError('TEMPER_TOOL_INPUT_INVALID', `"${key}" is not the name of a branch: "${printable(name, 80)}"`);
}

/** Throws TEMPER_CONNECTION_DENIED for a branch that no agent may push. `head`: the default branch, as far as the server says. */
export function assertPushable(repository: ConnectedRepository, branch: string, head: string | undefined): void {
  const { connection, branchPrefix, mayPushDefaultBranch } = repository;
  if (branch === head) {
    if (mayPushDefaultBranch) return;
    throw denied(`connection "${connection}" does not permit the default branch ${branch}; push another branch`);
  }
  if (branchPrefix === undefined)
    throw denied(`connection "${connection}" is for reading; a user sets git.branchPrefix of it to permit branches`);
  if (!branch.startsWith(branchPrefix) || branch === branchPrefix)
    throw denied(`connection "${connection}" permits branches that begin with ${branchPrefix}, and not ${branch}`);
}

function denied(message: string): TemperError {
  return new TemperError('TEMPER_CONNECTION_DENIED', message);
}
