import { readFile } from 'node:fs/promises';
import { digestOf } from '../../lib/canonical.ts';
import type { Clock } from '../../lib/clock.ts';
import { messageOf, TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import type { Network } from '../../net/dialer.ts';
import { readSecretFile } from '../../net/secret-file.ts';
import { httpSearch, type HttpSearchOptions } from '../../toolbox/web/search/http-search.ts';
import { WEB_SEARCH, searchWeb } from '../../toolbox/web/search/web-search.ts';
import type { BrokeredTool, CallingMessage } from '../brokered/port.ts';
import { assertNoEcho, containing } from '../capabilities/credentials.ts';
import { type EgressHostsDeps, reachableHosts, portOf } from '../capabilities/egress-hosts.ts';
import type { HostCircuits } from '../capabilities/host-circuits.ts';
import type { SearchService } from './config.ts';

export interface SearchToolDeps {
  /** Undefined: the service is on a private host, which the gateway reaches itself. */
  egress: EgressHostsDeps | undefined;
  circuits: HostCircuits;
  clock: Clock;
  /** Resolves the private host. Default: the name server of the system. */
  network?: Network;
}

/**
 * `web_search` with the service of the platform. The service is no choice of the agent, so the agent needs no grant for its host: the action
 * of the tool decides.
 */
export function searchTool(service: SearchService, deps: SearchToolDeps): BrokeredTool {
  const { type, url } = service;
  const { host } = new URL(url);
  const descriptor = { ...WEB_SEARCH, hosts: [host] };
  return {
    descriptor,
    definition: digestOf({ descriptor, service: { type, url } } as never),
    requests: () => [],
    execute: (input, delivery, op) =>
      deps.circuits.during(delivery.claims.agentUid, host, async () => {
        const key = await keyOf(service);
        const provider = { type, url, isPrivate: service.private === true };
        const options = {
          provider,
          key: async () => key,
          clock: deps.clock,
          ...(await connectionOf(service, delivery, deps)),
        };
        const output = await searchWeb(httpSearch(options), input, op);
        if (key !== undefined) assertNoEcho(descriptor.name, output, { isIn: containing([key]) });
        return output;
      }),
  };
}

/** Through the egress proxy, which charges the agent; to a private host the gateway connects itself, because the proxy reaches none. */
async function connectionOf(
  service: SearchService,
  delivery: CallingMessage,
  { egress, network }: SearchToolDeps,
): Promise<Pick<HttpSearchOptions, 'connect' | 'network' | 'certificateAuthorities'>> {
  const authorities = service.caFile === undefined ? undefined : [await authorityOf(service.caFile)];
  if (service.private === true)
    return {
      ...(network === undefined ? {} : { network }),
      ...(authorities === undefined ? {} : { certificateAuthorities: authorities }),
    };
  if (egress === undefined) throw new TypeError('a public search service without egress is refused at the start');
  const url = new URL(service.url);
  const hosts = reachableHosts(url, { hosts: [`${url.hostname}:${portOf(url)}`] }, egress);
  return { connect: hosts.connect(delivery, authorities) };
}

async function keyOf({ keyFile }: SearchService): Promise<string | undefined> {
  if (keyFile === undefined) return undefined;
  const found = await readSecretFile(keyFile);
  if ('secret' in found) return found.secret;
  throw new TemperError('TEMPER_SEARCH_FAILED', `the file with the key of the search service ${found.problem}`);
}

async function authorityOf(caFile: string): Promise<string> {
  try {
    return await readFile(caFile, 'utf8');
  } catch (cause) {
    const message = `the authorities of the search service cannot be read: ${printable(messageOf(cause), 200)}`;
    throw new TemperError('TEMPER_SEARCH_FAILED', message, { cause });
  }
}
