import type { ExternalToolDeps } from '../../engine/ports.ts';
import type { SafeBytesFetch } from '../../net/fetch.ts';
import type { Repositories } from '../../toolbox/git/remote/port.ts';
import type { Tool } from '../../tools/contract.ts';
import type { ChargedFetchDeps } from '../usage/charged-fetch.ts';

/** What tools that send requests to hosts get of their agent. */
export interface HostToolDeps extends ExternalToolDeps {
  /** A fetch with the guards of `web_fetch`, whose bytes are charged to the agent. */
  fetchWith(options: Omit<ChargedFetchDeps, 'clock' | 'ids' | 'network' | 'ledger'>): SafeBytesFetch;
}

/** The tools of one agent that send requests to hosts. */
export type HostTools = (deps: HostToolDeps) => readonly Tool[];

/** The repositories of the connections of a user, for one agent. */
export type RepositoriesOf = (deps: Pick<HostToolDeps, 'fetchWith'>) => Repositories;
