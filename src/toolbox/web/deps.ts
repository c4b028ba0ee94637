import { GIT_HEADERS } from '../../git/http-transport.ts';
import type { SafeBytesFetch } from '../../net/fetch.ts';
import type { Decision, PolicyRequest } from '../../policy/types.ts';
import type { CallerContext } from '../../tools/contract.ts';
import type { PageReader } from './page/page-thread.ts';

/** Lower-case names of the request headers that `Web.fetch` has to permit beside the allowlisted ones. */
export const WEB_HEADERS: ReadonlySet<string> = GIT_HEADERS;

/** How the web tools reach hosts and read what they answer. */
export interface Web {
  /** Validates each host and address, and charges the bytes to the agent. */
  fetch: SafeBytesFetch;
  readPage: PageReader;
}

export interface WebDeps {
  /** Asks the current policy of the agent, for each host. */
  decide: (caller: CallerContext, request: PolicyRequest) => Decision;
  /** Absent: the engine has no way to the internet. */
  web?: Web;
}
