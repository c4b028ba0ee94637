import { connect } from 'node:net';
import type { Network } from '../../src/net/dialer.ts';

export interface LoopbackNetworkOptions {
  /** Of the server at which every connection ends. */
  port: () => number;
  /** The addresses of a name; by default one public address for every name. */
  addresses?: (host: string) => string[];
  /** Called with each address and port that is dialled. */
  dialled?: (address: string, port: number) => void;
}

/** Names resolve to public addresses; every connection ends at a server of the test. */
export function loopbackNetwork({ port, addresses, dialled }: LoopbackNetworkOptions): Network {
  return {
    resolve: (host) => Promise.resolve(addresses?.(host) ?? ['93.184.215.14']),
    connect(address, wanted) {
      dialled?.(address, wanted);
      return new Promise((resolve, reject) => {
        const socket = connect({ host: '127.0.0.1', port: port() }, () => resolve(socket));
        socket.once('error', reject);
      });
    },
  };
}
