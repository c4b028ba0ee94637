import type { Tool } from '../../../tools/contract.ts';
import { gitCloneTool } from '../clone/git-clone.ts';
import type { RemoteGitDeps } from './deps.ts';
import { gitFetchTool } from './git-fetch.ts';
import { gitPushTool } from './git-push.ts';
import { pullRequestTool } from './pull-request.ts';

/** The tools that connect to repositories elsewhere: the client of Temper does, and never Git. */
export function remoteGitTools(deps: RemoteGitDeps): Tool[] {
  return [gitCloneTool(deps), gitFetchTool(deps), gitPushTool(deps), pullRequestTool(deps)];
}
