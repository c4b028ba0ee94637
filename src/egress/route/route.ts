import type { Socket } from 'node:net';
import { dialTcp, type Network, validateAddresses } from '../../net/dialer.ts';
import type { Target } from '../../net/targets.ts';

/** A connection to a target, and the address that the proxy connected to. */
interface RoutedConnection {
  socket: Socket;
  address: string;
}

/** How connections leave this replica. Throws TEMPER_FETCH_DENIED, TEMPER_FETCH_FAILED, and the errors of the network. */
export type Route = (target: Target, signal: AbortSignal) => Promise<RoutedConnection>;

/** Resolves the name once, validates all its addresses, and connects to one of them. */
export function directRoute(network: Network): Route {
  return async (target, signal) => {
    const addresses = await validateAddresses(target, network, signal);
    return dialTcp(target.port, addresses, network, signal);
  };
}
