/** The `fetch` of tools in a pod: every connection is a tunnel through the egress proxy, which decides about it. */
import type { EgressEndpoint, EgressEndpoints } from '../../gateway-client/endpoints/egress-endpoints.ts';
import { DELIVERY_TOKEN_HEADER } from '../../gateway-api/pod-api.ts';
import type { Clock } from '../../lib/clock.ts';
import { isTemperError, TemperError } from '../../lib/errors.ts';
import { createSafeBytesFetch, type SafeBytesFetch, type SafeFetchOptions } from '../../net/fetch.ts';
import { connectThroughProxy } from '../../net/proxied-connection.ts';

export interface EgressFetchDeps {
  /** The address of the proxy, and the token of the pod for it. */
  files: Pick<EgressEndpoints, 'current'>;
  /** Of the current message: the proxy charges the connection to it. */
  deliveryToken: () => string;
  clock: Clock;
}

export function egressFetch(
  deps: EgressFetchDeps,
  options: Pick<SafeFetchOptions, 'sentHeaders'> = {},
): SafeBytesFetch {
  const { clock } = deps;
  return createSafeBytesFetch({
    ...options,
    clock,
    async connect(target, signal) {
      const proxy = await endpointOf(deps);
      const headers = { [DELIVERY_TOKEN_HEADER]: deps.deliveryToken() };
      return connectThroughProxy(target, { proxy, headers, trust: proxy.targetTrust }, signal);
    },
  });
}

/** Without an egress proxy, the operator writes no address of one. */
async function endpointOf({ files }: EgressFetchDeps): Promise<EgressEndpoint> {
  try {
    return await files.current();
  } catch (cause) {
    if (!isTemperError(cause)) throw cause;
    throw new TemperError(
      'TEMPER_EGRESS_UNAVAILABLE',
      'this pod has no network egress; forge a tool that needs no network',
      { cause },
    );
  }
}
