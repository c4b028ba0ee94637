import { Resolver } from 'node:dns/promises';
import pLimit from 'p-limit';
import { abortable, onAbort } from '../lib/async/abort.ts';
import { hostsFile } from './hosts-file.ts';

/** All addresses of a host name. Rejects when there are none, or when the signal aborts. */
export type Resolve = (host: string, signal: AbortSignal) => Promise<readonly string[]>;

export interface ResolverOptions {
  hostsFile?: string;
  /** `ADDRESS:PORT` of the name servers instead of those of the system. */
  servers?: readonly string[];
  timeoutMs?: number;
  /** Lookups at the same time; further ones wait. */
  maxLookups?: number;
}

const TIMEOUT_MS = 5_000;
/** A lost packet is sent again within the timeout. */
const TRY_TIMEOUT_MS = 1_500;
const MAX_LOOKUPS = 16;

/**
 * Resolves names without the `getaddrinfo` of the system, which occupies one of the four threads that the process shares with its files
 * for as long as a name server does not answer. As with the system, `/etc/hosts` comes first, then the name servers of `/etc/resolv.conf`. Names
 * are absolute: search domains do not apply.
 */
export function createResolver(options: ResolverOptions = {}): Resolve {
  const hosts = hostsFile(options.hostsFile ?? '/etc/hosts');
  const limit = pLimit(options.maxLookups ?? MAX_LOOKUPS);
  return async (host, signal) => {
    const local = await hosts.addressesOf(host);
    if (local !== undefined) return local;
    // The time of a waiting lookup counts too.
    const bounded = AbortSignal.any([signal, AbortSignal.timeout(options.timeoutMs ?? TIMEOUT_MS)]);
    const work = limit(() => (bounded.aborted ? [] : query(host, bounded, options.servers)));
    return abortable(work, bounded);
  };
}

/** One resolver per lookup: `cancel` ends all queries of a resolver. */
async function query(host: string, signal: AbortSignal, servers: readonly string[] | undefined): Promise<string[]> {
  const resolver = new Resolver({ timeout: TRY_TIMEOUT_MS, tries: 2 });
  if (servers !== undefined) resolver.setServers(servers);
  using _cancelling = onAbort(signal, () => resolver.cancel());
  const [v4, v6] = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)]);
  if (v4.status === 'rejected' && v6.status === 'rejected') throw v4.reason;
  return interleaved(addressesOf(v4), addressesOf(v6));
}

function addressesOf(result: PromiseSettledResult<string[]>): readonly string[] {
  return result.status === 'fulfilled' ? result.value : [];
}

/** Only the first addresses are tried, and a host may have a route for one family only. */
function interleaved(v4: readonly string[], v6: readonly string[]): string[] {
  return Array.from({ length: Math.max(v4.length, v6.length) }).flatMap((_, index) =>
    [v4[index], v6[index]].filter((address) => address !== undefined),
  );
}
